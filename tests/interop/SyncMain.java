import java.io.FileReader;
import java.util.Properties;
import org.apache.hadoop.conf.Configuration;
import org.apache.hudi.aws.sync.AwsGlueCatalogSyncTool;

/** Syncs AWS Glue once, with the properties of a file. */
public class SyncMain {
  public static void main(String[] args) throws Exception {
    Properties properties = new Properties();
    try (FileReader reader = new FileReader(args[0])) {
      properties.load(reader);
    }
    new AwsGlueCatalogSyncTool(properties, new Configuration()).syncHoodieTable();
    System.exit(0);
  }
}
