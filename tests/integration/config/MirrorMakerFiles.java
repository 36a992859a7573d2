import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.ByteArrayInputStream;
import java.io.PrintStream;
import java.lang.reflect.Constructor;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.regex.Pattern;
import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.common.config.AbstractConfig;
import org.apache.kafka.common.security.JaasContext;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.connect.mirror.ConfigPropertyFilter;
import org.apache.kafka.connect.mirror.GroupFilter;
import org.apache.kafka.connect.mirror.MirrorCheckpointConfig;
import org.apache.kafka.connect.mirror.MirrorCheckpointConnector;
import org.apache.kafka.connect.mirror.MirrorHeartbeatConfig;
import org.apache.kafka.connect.mirror.MirrorHeartbeatConnector;
import org.apache.kafka.connect.mirror.MirrorMakerConfig;
import org.apache.kafka.connect.mirror.MirrorSourceConfig;
import org.apache.kafka.connect.mirror.MirrorSourceConnector;
import org.apache.kafka.connect.mirror.ReplicationPolicy;
import org.apache.kafka.connect.mirror.SourceAndTarget;
import org.apache.kafka.connect.mirror.TopicFilter;
import org.apache.kafka.connect.runtime.distributed.DistributedConfig;

/**
 * What MirrorMaker 2 makes of properties files, up to the first connection to a broker.
 *
 * <p>Standard input: `{"files": [base64], "topics": [name], "patterns": [[regex, [text]]]}`. Standard output: for each file an
 * object with `refused`, or with the settings of each flow; for each pattern `refused`, or which texts match.
 */
public class MirrorMakerFiles {
    private static final ObjectMapper MAPPER = new ObjectMapper();
    private static List<String> topics = new ArrayList<>();

    public static void main(String[] arguments) throws Exception {
        PrintStream out = System.out;
        System.setOut(System.err);
        JsonNode asked = MAPPER.readTree(System.in);
        asked.path("topics").forEach(topic -> topics.add(topic.asText()));
        ObjectNode answers = MAPPER.createObjectNode();
        ArrayNode files = answers.putArray("files");
        for (JsonNode file : asked.path("files")) {
            files.add(answer(file.binaryValue()));
        }
        ArrayNode patterns = answers.putArray("patterns");
        for (JsonNode each : asked.path("patterns")) {
            patterns.add(matches(each.get(0).asText(), each.get(1)));
        }
        MAPPER.writeValue(out, answers);
        out.flush();
        System.exit(0);
    }

    private static ObjectNode matches(String regex, JsonNode texts) {
        ObjectNode answer = MAPPER.createObjectNode();
        try {
            Pattern pattern = Pattern.compile(regex);
            ArrayNode found = answer.putArray("matches");
            texts.forEach(text -> found.add(pattern.matcher(text.asText()).matches()));
        } catch (IllegalArgumentException | NullPointerException error) {
            // Pattern throws the latter for some intersections.
            answer.remove("matches");
            answer.put("refused", String.valueOf(error.getMessage()));
        }
        return answer;
    }

    private static ObjectNode answer(byte[] data) throws Exception {
        ObjectNode answer = MAPPER.createObjectNode();
        try {
            Properties properties = new Properties();
            properties.load(new ByteArrayInputStream(data));
            ObjectNode entries = answer.putObject("entries");
            properties.forEach((key, value) -> entries.put((String) key, (String) value));
            Map<String, String> given = new HashMap<>(Utils.propsToStringMap(properties));
            // Reading all classes of the class path for each file takes seconds.
            given.put("plugin.discovery", "service_load");
            MirrorMakerConfig config = new MirrorMakerConfig(given);
            List<SourceAndTarget> pairs = config.clusterPairs();
            if (pairs.isEmpty()) {
                throw new IllegalArgumentException("no source->target replication flows");
            }
            ObjectNode flows = answer.putObject("flows");
            for (SourceAndTarget pair : pairs) {
                flows.set(pair.source() + "->" + pair.target(), flow(config, pair));
            }
        } catch (InvocationTargetException error) {
            answer.put("refused", String.valueOf(error.getCause()));
        } catch (ReflectiveOperationException error) {
            throw error;
        } catch (RuntimeException | LinkageError error) {
            answer.put("refused", String.valueOf(error));
        }
        return answer;
    }

    private static ObjectNode flow(MirrorMakerConfig config, SourceAndTarget pair) throws Exception {
        ObjectNode answer = MAPPER.createObjectNode();
        Map<String, String> worker = config.workerConfig(pair);
        answer.set("worker", strings(worker));
        new DistributedConfig(new HashMap<>(worker));

        Map<String, String> given = resolved(config, config.connectorBaseConfig(pair, MirrorSourceConnector.class));
        answer.set("connector", strings(given));
        MirrorSourceConfig source = new MirrorSourceConfig(given);
        MirrorCheckpointConfig checkpoint =
            new MirrorCheckpointConfig(resolved(config, config.connectorBaseConfig(pair, MirrorCheckpointConnector.class)));
        new MirrorHeartbeatConfig(resolved(config, config.connectorBaseConfig(pair, MirrorHeartbeatConnector.class)));
        boolean enabled = (Boolean) call(source, "enabled");
        answer.put("enabled", enabled);

        ObjectNode values = answer.putObject("values");
        for (AbstractConfig each : List.of(source, checkpoint)) {
            each.values().forEach((name, value) -> values.put(name, String.valueOf(value)));
        }
        ObjectNode clients = answer.putObject("clients");
        clients.set("data_consumer", client(call(source, "sourceConsumerConfig", "role")));
        clients.set("source_admin", client(call(source, "sourceAdminConfig", "role")));
        clients.set("target_admin", client(call(source, "targetAdminConfig", "role")));
        clients.set("offset_syncs_producer", client(call(source, "offsetSyncsTopicProducerConfig")));
        clients.set("offset_syncs_consumer", client(call(checkpoint, "offsetSyncsTopicConsumerConfig")));
        answer.put("offset_syncs_topic", (String) call(source, "offsetSyncsTopic"));
        answer.put("checkpoints_topic", (String) call(source, "checkpointsTopic"));
        if (enabled) {
            topics(source, checkpoint, answer);
        }
        for (String side : List.of("sourceAdminConfig", "targetAdminConfig")) {
            connect((Map<?, ?>) call(source, side, "role"));
        }
        Map<String, Object> consumer = plain(call(source, "sourceConsumerConfig", "role"));
        consumer.put("key.deserializer", "org.apache.kafka.common.serialization.ByteArrayDeserializer");
        consumer.put("value.deserializer", "org.apache.kafka.common.serialization.ByteArrayDeserializer");
        new ConsumerConfig(consumer);
        return answer;
    }

    private static Map<String, String> resolved(MirrorMakerConfig config, Map<String, String> given) throws Exception {
        Method transform = MirrorMakerConfig.class.getDeclaredMethod("transform", Map.class);
        transform.setAccessible(true);
        @SuppressWarnings("unchecked")
        Map<String, String> resolved = (Map<String, String>) transform.invoke(config, given);
        return resolved;
    }

    /** What is looked at before the first connection: the settings, the addresses, who logs in. */
    private static void connect(Map<?, ?> settings) {
        AdminClientConfig config = new AdminClientConfig(plain(settings));
        for (String address : config.getList("bootstrap.servers")) {
            if (address == null || address.isEmpty()) {
                continue;
            }
            if (Utils.getHost(address) == null || Utils.getPort(address) == null) {
                throw new IllegalArgumentException("Invalid url in bootstrap.servers: " + address);
            }
            new java.net.InetSocketAddress("127.0.0.1", Utils.getPort(address));
        }
        if (config.getString("security.protocol").toUpperCase(java.util.Locale.ROOT).startsWith("SASL")) {
            JaasContext.loadClientContext(config.values());
        }
    }

    private static void topics(MirrorSourceConfig source, MirrorCheckpointConfig checkpoint, ObjectNode answer)
        throws Exception {
        ReplicationPolicy policy = (ReplicationPolicy) call(source, "replicationPolicy");
        TopicFilter filter = (TopicFilter) call(source, "topicFilter");
        GroupFilter groups = (GroupFilter) call(checkpoint, "groupFilter");
        ConfigPropertyFilter configs = (ConfigPropertyFilter) call(source, "configPropertyFilter");
        String alias = (String) call(source, "sourceClusterAlias");
        SourceAndTarget pair = new SourceAndTarget(alias, (String) call(source, "targetClusterAlias"));
        Constructor<MirrorSourceConnector> constructor = MirrorSourceConnector.class.getDeclaredConstructor(
            SourceAndTarget.class, ReplicationPolicy.class, TopicFilter.class, ConfigPropertyFilter.class,
            boolean.class);
        constructor.setAccessible(true);
        MirrorSourceConnector connector = constructor.newInstance(
            pair, policy, filter, configs, call(source, "heartbeatsReplicationEnabled"));
        ObjectNode remote = answer.putObject("remote");
        ObjectNode taken = answer.putObject("groups");
        for (String topic : topics) {
            boolean replicated = (Boolean) call(connector, "shouldReplicateTopic", topic);
            remote.put(topic, replicated ? policy.formatRemoteTopic(alias, topic) : null);
            taken.put(topic, groups.shouldReplicateGroup(topic));
        }
    }

    private static Object call(Object object, String name, Object... arguments) throws Exception {
        for (Class<?> type = object.getClass(); type != null; type = type.getSuperclass()) {
            for (Method method : type.getDeclaredMethods()) {
                if (method.getName().equals(name) && method.getParameterCount() == arguments.length
                    && (arguments.length == 0 || method.getParameterTypes()[0] == String.class)) {
                    method.setAccessible(true);
                    return method.invoke(object, arguments);
                }
            }
        }
        throw new NoSuchMethodException(name);
    }

    private static Map<String, Object> plain(Object settings) {
        Map<String, Object> plain = new HashMap<>();
        ((Map<?, ?>) settings).forEach((name, value) -> plain.put((String) name, value));
        plain.remove("client.id");
        return plain;
    }

    private static ObjectNode client(Object settings) {
        ObjectNode node = MAPPER.createObjectNode();
        new TreeMap<>(plain(settings)).forEach((name, value) -> {
            if (value instanceof org.apache.kafka.common.config.types.Password) {
                node.put(name, ((org.apache.kafka.common.config.types.Password) value).value());
            } else if (value instanceof List) {
                node.put(name, String.join(",", ((List<?>) value).stream().map(String::valueOf).toList()));
            } else if (value != null) {
                node.put(name, value instanceof Class ? ((Class<?>) value).getName() : String.valueOf(value));
            }
        });
        return node;
    }

    private static ObjectNode strings(Map<String, String> settings) {
        ObjectNode node = MAPPER.createObjectNode();
        new TreeMap<>(settings).forEach(node::put);
        return node;
    }
}
