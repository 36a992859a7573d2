import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.ObjectReader;
import com.fasterxml.jackson.databind.ObjectWriter;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.util.Map;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.connector.ConnectRecord;
import org.apache.kafka.connect.errors.DataException;
import org.apache.kafka.connect.transforms.Transformation;

/**
 * Leaves out JSON values by a field and masks another one. MirrorMaker hands transforms bytes, which none of Connect's
 * own looks into; so this one parses and writes them itself, both once, whatever is to be done.
 */
public class FilterAndMask<R extends ConnectRecord<R>> implements Transformation<R> {
    private static final ObjectMapper MAPPER = new ObjectMapper();
    private static final ObjectReader READER = MAPPER.readerFor(ObjectNode.class);
    private static final ObjectWriter WRITER = MAPPER.writerFor(ObjectNode.class);

    private String filterField;
    private String leftOut;
    private String maskField;
    private String mask;
    private int shown;

    @Override
    public void configure(Map<String, ?> settings) {
        filterField = (String) settings.get("filter.field");
        leftOut = (String) settings.get("filter.value");
        maskField = (String) settings.get("mask.field");
        mask = (String) settings.get("mask.text");
        shown = Integer.parseInt((String) settings.get("mask.shown"));
    }

    @Override
    public R apply(R record) {
        byte[] value = (byte[]) record.value();
        if (value == null) {
            return record;
        }
        try {
            ObjectNode fields = READER.readValue(value);
            JsonNode found = fields.get(filterField);
            if (found == null || leftOut.equals(found.textValue())) {
                return null;
            }
            String text = fields.get(maskField).textValue();
            fields.put(maskField, mask + text.substring(text.length() - shown));
            return record.newRecord(record.topic(), record.kafkaPartition(), record.keySchema(), record.key(),
                record.valueSchema(), WRITER.writeValueAsBytes(fields), record.timestamp());
        } catch (IOException error) {
            throw new DataException("not a JSON object", error);
        }
    }

    @Override
    public ConfigDef config() {
        return new ConfigDef()
            .define("filter.field", ConfigDef.Type.STRING, ConfigDef.Importance.HIGH, "")
            .define("filter.value", ConfigDef.Type.STRING, ConfigDef.Importance.HIGH, "")
            .define("mask.field", ConfigDef.Type.STRING, ConfigDef.Importance.HIGH, "")
            .define("mask.text", ConfigDef.Type.STRING, ConfigDef.Importance.HIGH, "")
            .define("mask.shown", ConfigDef.Type.STRING, ConfigDef.Importance.HIGH, "");
    }

    @Override
    public void close() {
    }
}
