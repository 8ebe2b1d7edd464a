import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.attribute.PosixFilePermissions;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;

/**
 * Hadoop's local file system, which sets permissions by itself and reads through small buffers.
 *
 * Without its native library Hadoop starts the program chmod for each file and folder that it makes: ten for a row that
 * Spark writes, a hundred for a small write of Hudi, a sixth of its time.
 *
 * Hudi opens each log file and each file of the metadata table with a buffer of 16 MiB, which a file system makes and
 * clears before it reads a few KiB: half of the memory that a small write of Hudi takes, which is some GiB.
 */
public class LocalFiles extends LocalFileSystem {
    public LocalFiles() {
        super(new Raw());
    }

    static class Raw extends RawLocalFileSystem {
        private static final int BUFFER = 1 << 16;

        @Override
        public FSDataInputStream open(Path path, int bufferSize) throws IOException {
            return super.open(path, Math.min(bufferSize, BUFFER));
        }

        @Override
        public void setPermission(Path path, FsPermission permission) throws IOException {
            if (permission.getStickyBit()) { // Java has no name for it
                super.setPermission(path, permission);
            } else {
                Files.setPosixFilePermissions(
                    pathToFile(path).toPath(), PosixFilePermissions.fromString(permission.toString()));
            }
        }
    }
}
