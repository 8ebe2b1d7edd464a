package org.apache.hudi.aws.transaction.lock;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.time.Duration;
import java.time.ZoneOffset;
import java.time.ZonedDateTime;
import java.time.format.DateTimeFormatter;
import java.util.Properties;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;
import org.apache.hudi.client.transaction.lock.StorageLockClient;
import org.apache.hudi.client.transaction.lock.models.LockGetResult;
import org.apache.hudi.client.transaction.lock.models.LockUpsertResult;
import org.apache.hudi.client.transaction.lock.models.StorageLockData;
import org.apache.hudi.client.transaction.lock.models.StorageLockFile;
import org.apache.hudi.common.util.Option;
import org.apache.hudi.common.util.collection.Pair;

/**
 * Conditional writes on an S3 server by plain HTTP, under the name of the class that Apache Hudi loads for {@code s3://}.
 *
 * <p>The state machine is Hudi's own; its client for S3 and the SDK below it are in no jar that tests can have. Properties
 * {@code test.s3.endpoint}, {@code test.s3.access}, {@code test.s3.secret}, {@code test.s3.region}.
 */
public final class S3StorageLockClient implements StorageLockClient {
  private static final DateTimeFormatter TIME = DateTimeFormatter.ofPattern("yyyyMMdd'T'HHmmss'Z'");

  private final HttpClient http = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
  private final String lockFile;
  private final Properties properties;

  public S3StorageLockClient(String owner, String lockFile, Properties properties) {
    this.lockFile = lockFile;
    this.properties = properties;
  }

  @Override
  public Pair<LockUpsertResult, Option<StorageLockFile>> tryUpsertLockFile(
      StorageLockData data, Option<StorageLockFile> previous) {
    String[] condition =
        previous.isPresent()
            ? new String[] {"If-Match", previous.get().getVersionId()}
            : new String[] {"If-None-Match", "*"};
    try {
      HttpResponse<byte[]> answer = send("PUT", lockFile, StorageLockFile.toByteArray(data), condition);
      switch (answer.statusCode()) {
        case 200:
          StorageLockFile written = new StorageLockFile(data, answer.headers().firstValue("ETag").get());
          return Pair.of(LockUpsertResult.SUCCESS, Option.of(written));
        case 404:
        case 412:
          return Pair.of(LockUpsertResult.ACQUIRED_BY_OTHERS, Option.empty());
        case 429:
          return Pair.of(LockUpsertResult.THROTTLED, Option.empty());
        default:
          return Pair.of(LockUpsertResult.UNKNOWN_ERROR, Option.empty());
      }
    } catch (IOException unknown) {
      return Pair.of(LockUpsertResult.UNKNOWN_ERROR, Option.empty());
    }
  }

  @Override
  public Pair<LockGetResult, Option<StorageLockFile>> readCurrentLockFile() {
    try {
      HttpResponse<byte[]> answer = send("GET", lockFile, new byte[0]);
      if (answer.statusCode() == 404) {
        return Pair.of(LockGetResult.NOT_EXISTS, Option.empty());
      }
      if (answer.statusCode() != 200) {
        return Pair.of(LockGetResult.UNKNOWN_ERROR, Option.empty());
      }
      String version = answer.headers().firstValue("ETag").get();
      ByteArrayInputStream content = new ByteArrayInputStream(answer.body());
      return Pair.of(LockGetResult.SUCCESS, Option.of(StorageLockFile.createFromStream(content, version)));
    } catch (IOException unknown) {
      return Pair.of(LockGetResult.UNKNOWN_ERROR, Option.empty());
    }
  }

  @Override
  public Option<String> readObject(String path, boolean checkExistsFirst) {
    try {
      HttpResponse<byte[]> answer = send("GET", path, new byte[0]);
      return answer.statusCode() == 200
          ? Option.of(new String(answer.body(), StandardCharsets.UTF_8))
          : Option.empty();
    } catch (IOException unknown) {
      return Option.empty();
    }
  }

  @Override
  public boolean writeObject(String path, String content) {
    try {
      return send("PUT", path, content.getBytes(StandardCharsets.UTF_8)).statusCode() == 200;
    } catch (IOException unknown) {
      return false;
    }
  }

  @Override
  public void close() {}

  /** Signature version 4, with the headers that every request has. */
  private HttpResponse<byte[]> send(String method, String file, byte[] body, String... headers) throws IOException {
    URI place = URI.create(file.replaceFirst("^s3a?://", property("endpoint") + "/"));
    String now = ZonedDateTime.now(ZoneOffset.UTC).format(TIME);
    String day = now.substring(0, 8);
    try {
      String digest = hex(MessageDigest.getInstance("SHA-256").digest(body));
      String names = "host;x-amz-content-sha256;x-amz-date";
      String canonical =
          String.join(
              "\n",
              method,
              place.getRawPath(),
              "",
              "host:" + place.getAuthority(),
              "x-amz-content-sha256:" + digest,
              "x-amz-date:" + now,
              "",
              names,
              digest);
      String scope = day + "/" + property("region") + "/s3/aws4_request";
      byte[] hashed = MessageDigest.getInstance("SHA-256").digest(canonical.getBytes(StandardCharsets.UTF_8));
      String text = String.join("\n", "AWS4-HMAC-SHA256", now, scope, hex(hashed));
      byte[] key = ("AWS4" + property("secret")).getBytes(StandardCharsets.UTF_8);
      for (String part : new String[] {day, property("region"), "s3", "aws4_request"}) {
        key = sign(key, part);
      }
      String credential = "Credential=" + property("access") + "/" + scope;
      HttpRequest.Builder request =
          HttpRequest.newBuilder(place)
              .timeout(Duration.ofSeconds(10))
              .method(method, HttpRequest.BodyPublishers.ofByteArray(body))
              .header("x-amz-content-sha256", digest)
              .header("x-amz-date", now)
              .header(
                  "Authorization",
                  "AWS4-HMAC-SHA256 " + credential + ", SignedHeaders=" + names + ", Signature=" + hex(sign(key, text)));
      for (int at = 0; at < headers.length; at += 2) {
        request.header(headers[at], headers[at + 1]);
      }
      return http.send(request.build(), HttpResponse.BodyHandlers.ofByteArray());
    } catch (GeneralSecurityException | InterruptedException failure) {
      throw new IOException(failure);
    }
  }

  private String property(String name) {
    return properties.getProperty("test.s3." + name);
  }

  private static byte[] sign(byte[] key, String text) throws GeneralSecurityException {
    Mac mac = Mac.getInstance("HmacSHA256");
    mac.init(new SecretKeySpec(key, "HmacSHA256"));
    return mac.doFinal(text.getBytes(StandardCharsets.UTF_8));
  }

  private static String hex(byte[] bytes) {
    StringBuilder text = new StringBuilder();
    for (byte each : bytes) {
      text.append(String.format("%02x", each));
    }
    return text.toString();
  }
}
