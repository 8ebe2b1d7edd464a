import java.io.FileReader;
import java.util.Locale;
import java.util.Map;
import java.util.Properties;
import org.apache.hadoop.conf.Configuration;
import org.apache.hudi.aws.sync.AWSGlueCatalogSyncClient;
import org.apache.hudi.aws.sync.AwsGlueCatalogSyncTool;
import org.apache.hudi.hive.HiveSyncConfig;
import org.apache.parquet.schema.MessageType;
import org.apache.parquet.schema.Type;

/** Syncs AWS Glue once, with the properties of a file. */
public class SyncMain {
  public static void main(String[] args) throws Exception {
    Properties properties = new Properties();
    try (FileReader reader = new FileReader(args[0])) {
      properties.load(reader);
    }
    new OrderedTool(properties).syncHoodieTable();
    System.exit(0);
  }

  private static final class OrderedTool extends AwsGlueCatalogSyncTool {
    OrderedTool(Properties properties) {
      super(properties, new Configuration());
    }

    @Override
    protected void initSyncClient(HiveSyncConfig config) {
      syncClient = new OrderedClient(config);
    }
  }

  /**
   * Waits for new columns before the next request. Apache Hudi 0.15 does not, and a request that overtakes the update
   * undoes it.
   */
  private static final class OrderedClient extends AWSGlueCatalogSyncClient {
    private static final long LIMIT_MILLIS = 60_000;

    OrderedClient(HiveSyncConfig config) {
      super(config);
    }

    @Override
    public void updateTableSchema(String table, MessageType schema) {
      super.updateTableSchema(table, schema);
      long end = System.currentTimeMillis() + LIMIT_MILLIS;
      while (!hasColumns(table, schema)) {
        if (System.currentTimeMillis() > end) {
          throw new IllegalStateException(table + " does not get the columns of " + schema);
        }
        pause();
      }
    }

    private boolean hasColumns(String table, MessageType schema) {
      Map<String, String> found = getMetastoreSchema(table);
      for (Type field : schema.getFields()) {
        String name = field.getName();
        if (!found.containsKey(name) && !found.containsKey(name.toLowerCase(Locale.ROOT))) {
          return false;
        }
      }
      return true;
    }

    private static void pause() {
      try {
        Thread.sleep(20);
      } catch (InterruptedException error) {
        throw new IllegalStateException(error);
      }
    }
  }
}
