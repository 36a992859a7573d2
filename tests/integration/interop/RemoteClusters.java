import java.time.Duration;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.connect.mirror.MirrorClient;
import org.apache.kafka.connect.mirror.RemoteClusterUtils;

/**
 * Asks MM2's own client about a cluster and prints one `name=value` a line.
 * Arguments: upstream alias, consumer groups separated by commas, then properties as key=value.
 */
public class RemoteClusters {
    public static void main(String[] arguments) throws Exception {
        String upstream = arguments[0];
        Map<String, Object> properties = new HashMap<>();
        for (String argument : Arrays.copyOfRange(arguments, 2, arguments.length)) {
            int separator = argument.indexOf('=');
            properties.put(argument.substring(0, separator), argument.substring(separator + 1));
        }
        print("upstreamClusters", new TreeSet<>(RemoteClusterUtils.upstreamClusters(properties)));
        print("heartbeatTopics", new TreeSet<>(RemoteClusterUtils.heartbeatTopics(properties)));
        print("checkpointTopics", new TreeSet<>(RemoteClusterUtils.checkpointTopics(properties)));
        print("replicationHops", RemoteClusterUtils.replicationHops(properties, upstream));
        print("hopsFromNowhere", RemoteClusterUtils.replicationHops(properties, "nowhere"));
        try (MirrorClient client = new MirrorClient(properties)) {
            print("remoteTopics", new TreeSet<>(client.remoteTopics(upstream)));
        }
        for (String group : arguments[1].split(",")) {
            Map<String, String> translated = new TreeMap<>();
            Map<TopicPartition, OffsetAndMetadata> offsets =
                RemoteClusterUtils.translateOffsets(properties, upstream, group, Duration.ofSeconds(20));
            offsets.forEach((where, offset) -> translated.put(where.toString(), offset.offset() + offset.metadata()));
            print("translateOffsets " + group, translated);
        }
    }

    private static void print(String name, Object value) {
        System.out.println(name + "=" + value);
    }
}
