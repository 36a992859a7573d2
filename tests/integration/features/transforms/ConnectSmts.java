import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.SchemaAndValue;
import org.apache.kafka.connect.header.ConnectHeaders;
import org.apache.kafka.connect.header.Header;
import org.apache.kafka.connect.source.SourceRecord;
import org.apache.kafka.connect.storage.Converter;
import org.apache.kafka.connect.storage.HeaderConverter;
import org.apache.kafka.connect.transforms.Transformation;
import org.apache.kafka.connect.transforms.predicates.Predicate;

/**
 * Runs Connect's own transforms, predicates and converters. Standard input: a JSON array of cases with `settings`,
 * `decodes` and `record`; standard output: an array with the record that arrives, null, or an object with `error`.
 */
public class ConnectSmts {
    private static final ObjectMapper MAPPER = new ObjectMapper();
    private static final String BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter";

    public static void main(String[] arguments) throws Exception {
        ArrayNode answers = MAPPER.createArrayNode();
        for (JsonNode each : MAPPER.readTree(System.in)) {
            answers.add(answer(each));
        }
        MAPPER.writeValue(System.out, answers);
    }

    private static JsonNode answer(JsonNode asked) throws Exception {
        Map<String, String> settings = new HashMap<>();
        asked.get("settings").properties().forEach(entry -> settings.put(entry.getKey(), entry.getValue().asText()));
        try {
            return transformed(settings, asked.get("decodes").asBoolean(), asked.get("record"));
        } catch (ReflectiveOperationException error) {
            throw error;
        } catch (Exception error) {
            return MAPPER.createObjectNode().put("error", String.valueOf(error.getMessage()));
        }
    }

    private static JsonNode transformed(Map<String, String> settings, boolean decodes, JsonNode given) throws Exception {
        Converter keys = converter(settings, "key");
        Converter values = converter(settings, "value");
        HeaderConverter headerConverter = (HeaderConverter) instance(settings.getOrDefault("header.converter", BYTES));
        Map<String, String> headerOptions = under(settings, "header.converter.");
        headerOptions.put("converter.type", "header");
        headerConverter.configure(headerOptions);

        String topic = given.get("topic").asText();
        byte[] key = given.get("key").binaryValue();
        byte[] value = given.get("value").binaryValue();
        SchemaAndValue keyData = new SchemaAndValue(Schema.OPTIONAL_BYTES_SCHEMA, key);
        SchemaAndValue valueData = new SchemaAndValue(Schema.BYTES_SCHEMA, value);
        if (decodes) {
            keyData = keys.toConnectData(topic, key);
            valueData = values.toConnectData(topic, value);
        }
        ConnectHeaders headers = new ConnectHeaders();
        for (JsonNode header : given.get("headers")) {
            headers.addBytes(header.get(0).asText(), header.get(1).binaryValue());
        }
        SourceRecord record = new SourceRecord(Map.of(), Map.of(), topic, given.get("partition").asInt(),
            keyData.schema(), keyData.value(), valueData.schema(), valueData.value(),
            given.get("timestamp").isNull() ? null : given.get("timestamp").asLong(), headers);

        for (String name : settings.get("transforms").split(",")) {
            record = applied(settings, "transforms." + name.trim() + ".", record);
            if (record == null) {
                return MAPPER.nullNode();
            }
        }
        ObjectNode answer = MAPPER.createObjectNode();
        answer.put("topic", record.topic());
        answer.put("partition", record.kafkaPartition());
        answer.put("timestamp", record.timestamp());
        answer.put("key", keys.fromConnectData(record.topic(), record.keySchema(), record.key()));
        answer.put("value", values.fromConnectData(record.topic(), record.valueSchema(), record.value()));
        ArrayNode written = answer.putArray("headers");
        for (Header header : record.headers()) {
            byte[] data =
                headerConverter.fromConnectHeader(record.topic(), header.key(), header.schema(), header.value());
            written.addArray().add(header.key()).add(data);
        }
        return answer;
    }

    @SuppressWarnings("unchecked")
    private static SourceRecord applied(Map<String, String> settings, String prefix, SourceRecord record)
        throws Exception {
        Map<String, String> options = under(settings, prefix);
        String predicateName = options.remove("predicate");
        boolean negate = Boolean.parseBoolean(options.remove("negate"));
        Transformation<SourceRecord> transformation =
            (Transformation<SourceRecord>) instance(settings.get(prefix + "type"));
        transformation.configure(options);
        if (predicateName != null) {
            String predicatePrefix = "predicates." + predicateName + ".";
            Predicate<SourceRecord> predicate =
                (Predicate<SourceRecord>) instance(settings.get(predicatePrefix + "type"));
            predicate.configure(under(settings, predicatePrefix));
            if (negate == predicate.test(record)) {
                return record;
            }
        }
        return transformation.apply(record);
    }

    private static Converter converter(Map<String, String> settings, String side) throws Exception {
        Converter made = (Converter) instance(settings.getOrDefault(side + ".converter", BYTES));
        made.configure(under(settings, side + ".converter."), side.equals("key"));
        return made;
    }

    private static Object instance(String name) throws ReflectiveOperationException {
        return Class.forName(name).getDeclaredConstructor().newInstance();
    }

    private static Map<String, String> under(Map<String, String> settings, String prefix) {
        Map<String, String> found = new HashMap<>();
        settings.forEach((key, value) -> {
            if (key.startsWith(prefix)) {
                found.put(key.substring(prefix.length()), value);
            }
        });
        return found;
    }
}
