import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;

import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.record.internal.CompressionType;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.EndTransactionMarker;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.record.internal.SimpleRecord;
import org.apache.kafka.common.record.TimestampType;

/** Writes record batches as Kafka's own classes make them; see README.md in this folder. */
public class JavaBatches {
    private static final long TIME = 1_700_000_000_000L;

    private static SimpleRecord[] records(boolean headers) {
        Header[] none = new Header[0];
        Header[] some = {
            new RecordHeader("h", "1".getBytes(StandardCharsets.UTF_8)),
            new RecordHeader("h", null),
            new RecordHeader("", new byte[0]),
        };
        return new SimpleRecord[] {
            new SimpleRecord(TIME, bytes("key"), bytes("value".repeat(30)), headers ? some : none),
            new SimpleRecord(TIME + 5_000, null, bytes(""), none),
            new SimpleRecord(TIME - 7, bytes(""), null, none),
        };
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    private static void save(Path folder, String name, MemoryRecords records) throws IOException {
        ByteBuffer buffer = records.buffer().duplicate();
        byte[] raw = new byte[buffer.remaining()];
        buffer.get(raw);
        Files.write(folder.resolve(name + ".bin"), raw);
    }

    public static void main(String[] arguments) throws IOException {
        Path folder = Path.of(arguments[0]);
        for (CompressionType type : CompressionType.values()) {
            Compression compression = Compression.of(type).build();
            for (byte magic = 0; magic <= 2; magic++) {
                if (type == CompressionType.ZSTD && magic < 2) continue;
                save(folder, "magic-" + magic + "-" + type.name, MemoryRecords.withRecords(
                    magic, 100L, compression, TimestampType.CREATE_TIME, records(magic == 2)));
            }
        }
        ByteBuffer buffer = ByteBuffer.allocate(4096);
        MemoryRecordsBuilder builder = MemoryRecords.builder(
            buffer, RecordBatch.MAGIC_VALUE_V2, Compression.of(CompressionType.LZ4).build(),
            TimestampType.LOG_APPEND_TIME, 100L, TIME + 99);
        for (SimpleRecord record : records(true)) builder.append(record);
        save(folder, "log-append-time", builder.build());
        save(folder, "transactional", MemoryRecords.withTransactionalRecords(
            100L, Compression.NONE, 77L, (short) 3, 0, 12, records(true)));
        save(folder, "abort-marker", MemoryRecords.withEndTransactionMarker(
            103L, TIME, 12, 77L, (short) 3, new EndTransactionMarker(ControlRecordType.ABORT, 1)));
        save(folder, "commit-marker", MemoryRecords.withEndTransactionMarker(
            103L, TIME, 12, 77L, (short) 3, new EndTransactionMarker(ControlRecordType.COMMIT, 1)));
    }
}
