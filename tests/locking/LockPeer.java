import java.io.BufferedReader;
import java.io.FileInputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.nio.file.StandardOpenOption;
import java.util.Properties;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.conf.Configuration;
import org.apache.hudi.common.config.LockConfiguration;
import org.apache.hudi.common.config.TypedProperties;
import org.apache.hudi.common.lock.LockProvider;
import org.apache.hudi.config.HoodieLockConfig;
import org.apache.hudi.exception.HoodieLockException;
import org.apache.hudi.storage.StorageConfiguration;
import org.apache.hudi.storage.hadoop.HadoopStorageConfiguration;

/**
 * Takes and gives up the lock of one of Apache Hudi's lock providers, as told line by line on standard input.
 *
 * <p>Arguments: class of the provider, file of its properties. Commands and answers are those of
 * tests/locking/contention.py and tests/locking/jvm_lock.py.
 */
public final class LockPeer {
  private static final long PAUSE_MS = 5;
  private static final long WAIT_MS = 10_000;
  private static final long PATIENCE_MS = 120_000;

  private final String providerClass;
  private final TypedProperties properties = new TypedProperties();
  private LockProvider<?> provider;

  private LockPeer(String providerClass, String file) throws IOException {
    this.providerClass = providerClass;
    Properties read = new Properties();
    try (FileInputStream in = new FileInputStream(file)) {
      read.load(in);
    }
    TypedProperties.putAll(properties, HoodieLockConfig.newBuilder().fromProperties(read).build().getProps());
  }

  public static void main(String[] arguments) throws Exception {
    // Loggers that write to standard output must not be taken for answers.
    PrintStream answers = System.out;
    System.setOut(System.err);
    LockPeer peer = new LockPeer(arguments[0], arguments[1]);
    BufferedReader commands = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    String answer = "";
    for (String line = commands.readLine(); line != null; line = commands.readLine()) {
      try {
        answer = peer.obey(line.split(" ", 4));
      } catch (Throwable failure) {
        answer = "error " + describe(failure);
      }
      answers.println(answer);
      answers.flush();
      if (answer.equals("closed")) {
        break;
      }
    }
    // Not exit(): nobody asked for the shutdown hooks of providers, nor for waiting for their threads.
    Runtime.getRuntime().halt(0);
  }

  private String obey(String[] words) throws Exception {
    switch (words[0]) {
      case "open":
        open();
        return "opened";
      case "lock":
        return tryLock(Math.round(Double.parseDouble(words[1]) * 1000)) ? "locked" : "busy " + owner();
      case "unlock":
        open().unlock();
        return "unlocked";
      case "owner":
        return "owner " + owner();
      case "leave":
        leave();
        return "left";
      case "contend":
        contend(Integer.parseInt(words[1]), Paths.get(words[2]), words.length > 3 && words[3].equals("fresh"));
        return "done " + words[1];
      case "close":
        leave();
        return "closed";
      default:
        throw new IllegalArgumentException("unknown command " + words[0]);
    }
  }

  private LockProvider<?> open() throws Exception {
    if (provider == null) {
      provider =
          (LockProvider<?>)
              Class.forName(providerClass)
                  .getConstructor(LockConfiguration.class, StorageConfiguration.class)
                  .newInstance(
                      new LockConfiguration(properties), new HadoopStorageConfiguration(new Configuration()));
    }
    return provider;
  }

  private void leave() {
    LockProvider<?> open = provider;
    provider = null;
    if (open != null) {
      open.close();
    }
  }

  private String owner() throws Exception {
    return String.valueOf(open().getCurrentOwnerLockInfo()).replace('\n', ' ');
  }

  /** One try; some providers say no with an exception, which Hudi's LockManager takes for the same. */
  private boolean tryLock(long waitMs) throws Exception {
    LockProvider<?> open = open();
    try {
      return open.tryLock(waitMs, TimeUnit.MILLISECONDS);
    } catch (HoodieLockException refused) {
      System.err.println(describe(refused));
      return false;
    }
  }

  private void contend(int rounds, Path folder, boolean fresh) throws Exception {
    StringBuilder intervals = new StringBuilder();
    for (int round = 0; round < rounds; round++) {
      long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(PATIENCE_MS);
      while (!tryLock(WAIT_MS)) {
        if (System.nanoTime() > end) {
          throw new HoodieLockException("no lock within " + PATIENCE_MS + " ms in round " + round);
        }
        Thread.sleep(PAUSE_MS);
      }
      long entered = System.nanoTime();
      critical(folder);
      intervals.append(entered).append(' ').append(System.nanoTime()).append('\n');
      provider.unlock();
      if (fresh) {
        leave();
      }
    }
    Files.write(
        folder.resolve("intervals-jvm" + ProcessHandle.current().pid()),
        intervals.toString().getBytes(StandardCharsets.UTF_8),
        StandardOpenOption.CREATE,
        StandardOpenOption.APPEND);
  }

  /** What nobody else may do at the same time: make a file that must not be there, add one to a number, delete it. */
  private static void critical(Path folder) throws IOException {
    Path inside = folder.resolve("inside");
    Path counter = folder.resolve("counter");
    Files.write(inside, new byte[0], StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE);
    long count = 0;
    try {
      count = Long.parseLong(new String(Files.readAllBytes(counter), StandardCharsets.UTF_8).trim());
    } catch (NoSuchFileException first) {
      count = 0;
    }
    Files.write(counter, Long.toString(count + 1).getBytes(StandardCharsets.UTF_8));
    Files.delete(inside);
  }

  private static String describe(Throwable failure) {
    StringBuilder text = new StringBuilder();
    for (Throwable each = failure; each != null; each = each.getCause()) {
      text.append(text.length() == 0 ? "" : " <- ").append(each);
    }
    return text.toString().replace('\n', ' ').replace('\r', ' ');
  }
}
