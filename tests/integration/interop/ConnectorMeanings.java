import java.io.InputStream;
import java.lang.reflect.Method;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.Stream;
import org.apache.kafka.common.config.AbstractConfig;
import org.apache.kafka.connect.mirror.MirrorMakerConfig;
import org.apache.kafka.connect.mirror.ReplicationPolicy;
import org.apache.kafka.connect.mirror.SourceAndTarget;

/**
 * Prints what MM2's own classes make of connectors: of their own settings, and of the file that became of them.
 * Arguments: a folder with a folder per case, names of topics and groups, names of client settings, each with commas.
 * A case has the file mm2.properties and, per connector, <source>~<target>~<class>.properties.
 */
public class ConnectorMeanings {
    private static final String PACKAGE = "org.apache.kafka.connect.mirror.";
    private static final Set<String> OWN = Set.of("connectorName", "entityLabel", "metricsReporters",
        "metricNamesFormats", "consumerPollTimeout");

    private static List<String> names;
    private static Set<String> clientSettings;

    public static void main(String[] arguments) throws Exception {
        names = List.of(arguments[1].split(","));
        clientSettings = Set.of(arguments[2].split(","));
        for (Path folder : files(Path.of(arguments[0]))) {
            Map<String, String> written = read(folder.resolve("mm2.properties"));
            // Otherwise every one looks for plugins in all jars, which takes seconds.
            written.put("plugin.discovery", "service_load");
            MirrorMakerConfig file = new MirrorMakerConfig(written);
            for (Path connector : files(folder)) {
                String[] parts = connector.getFileName().toString().replace(".properties", "").split("~");
                if (parts.length != 3) {
                    continue;
                }
                SourceAndTarget pair = new SourceAndTarget(parts[0], parts[1]);
                Class<?> type = Class.forName(PACKAGE + parts[2]);
                Map<String, String> ofFile = file.connectorBaseConfig(pair, type);
                String title = folder.getFileName() + "|" + String.join("~", parts) + "|";
                print(title + "connect|", parts[2], read(connector));
                print(title + "file|", parts[2], ofFile);
                if (parts[2].equals("MirrorSourceConnector")) {
                    Map<String, String> worker = file.workerConfig(pair);
                    Map<String, Object> producer = new HashMap<>();
                    producer.put("bootstrap.servers", worker.get("bootstrap.servers"));
                    producer.putAll(stripped(worker, "producer."));
                    producer.putAll(stripped(ofFile, "producer.override."));
                    say(title + "file|", "dataProducer", kept(producer));
                    say(title + "file|", "pairs", file.clusterPairs().contains(pair));
                }
            }
        }
    }

    private static void print(String title, String connector, Map<String, String> settings) throws Exception {
        Class<?> type = Class.forName(PACKAGE + connector.replace("Connector", "Config"));
        Object config = type.getConstructor(Map.class).newInstance(settings);
        for (Class<?> each = type; each != AbstractConfig.class; each = each.getSuperclass()) {
            for (Method method : each.getDeclaredMethods()) {
                if (OWN.contains(method.getName()) || java.lang.reflect.Modifier.isStatic(method.getModifiers())) {
                    continue;
                }
                method.setAccessible(true);
                Class<?>[] parameters = method.getParameterTypes();
                if (parameters.length == 1 && parameters[0] == String.class && method.getReturnType() == Map.class) {
                    say(title, method.getName(), kept((Map<?, ?>) method.invoke(config, "role")));
                } else if (parameters.length == 0) {
                    describe(title, method.getName(), method.invoke(config));
                }
            }
        }
    }

    private static void describe(String title, String name, Object value) throws Exception {
        if (value instanceof ReplicationPolicy policy) {
            say(title, name, policy.getClass().getName());
            say(title, name + ".internal", policy.offsetSyncsTopic("x") + " " + policy.checkpointsTopic("x"));
            for (String topic : names) {
                say(title, name + ".remote." + topic, policy.formatRemoteTopic("x", topic));
            }
        } else if (value instanceof Map<?, ?> map) {
            say(title, name, kept(map));
        } else if (name.endsWith("Filter")) {
            for (Method method : value.getClass().getMethods()) {
                if (method.getName().startsWith("shouldReplicate")) {
                    Set<String> chosen = new TreeSet<>();
                    for (String each : names) {
                        if ((Boolean) method.invoke(value, each)) {
                            chosen.add(each);
                        }
                    }
                    say(title, name, chosen);
                }
            }
        } else {
            say(title, name, value);
        }
    }

    /** Client settings that have an effect: all others are not in the file any more. */
    private static Map<String, Object> kept(Map<?, ?> settings) {
        Map<String, Object> found = new TreeMap<>();
        settings.forEach((name, value) -> {
            if (clientSettings.contains(name)) {
                found.put((String) name, value);
            }
        });
        return found;
    }

    private static Map<String, String> stripped(Map<String, String> settings, String prefix) {
        Map<String, String> found = new HashMap<>();
        settings.forEach((name, value) -> {
            if (name.startsWith(prefix)) {
                found.put(name.substring(prefix.length()), value);
            }
        });
        return found;
    }

    private static Map<String, String> read(Path path) throws Exception {
        Properties properties = new Properties();
        try (InputStream input = Files.newInputStream(path)) {
            properties.load(input);
        }
        Map<String, String> found = new HashMap<>();
        properties.forEach((name, value) -> found.put((String) name, (String) value));
        return found;
    }

    private static List<Path> files(Path folder) throws Exception {
        try (Stream<Path> found = Files.list(folder)) {
            return found.sorted().toList();
        }
    }

    private static void say(String title, String name, Object value) {
        System.out.println(title + name + "|" + value);
    }
}
