import java.time.Duration;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Properties;
import java.util.Scanner;
import java.util.Set;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;

/**
 * A Kafka consumer for each line of standard input: `group protocol reset most topic...`. It subscribes, reads at most
 * so many records or to the ends of all its partitions, commits its positions, and leaves.
 * Prints a line for each record, `group topic partition value`.
 */
public class Clients {
    public static void main(String[] arguments) {
        try (Scanner lines = new Scanner(System.in)) {
            while (lines.hasNextLine()) {
                read(arguments[0], lines.nextLine().split(" "));
            }
        }
    }

    private static void read(String servers, String[] words) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", servers);
        settings.put("group.id", words[0]);
        settings.put("group.protocol", words[1]);
        settings.put("auto.offset.reset", words[2]);
        settings.put("isolation.level", "read_committed");
        settings.put("max.poll.records", "7");
        settings.put("enable.auto.commit", "false");
        int left = Integer.parseInt(words[3]);
        List<String> topics = Arrays.asList(words).subList(4, words.length);
        try (KafkaConsumer<String, String> consumer =
                new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(topics);
            while (left > 0 && !isAtEnds(consumer)) {
                for (ConsumerRecord<String, String> each : consumer.poll(Duration.ofMillis(200))) {
                    System.out.println(String.join(" ", words[0], each.topic(), "" + each.partition(), each.value()));
                    left--;
                }
                // All positions, also of partitions without records: the default of this client.
                consumer.commitSync();
            }
        }
        System.out.flush();
    }

    private static boolean isAtEnds(KafkaConsumer<String, String> consumer) {
        Set<TopicPartition> own = new HashSet<>(consumer.assignment());
        return !own.isEmpty()
            && consumer.endOffsets(own).entrySet().stream().allMatch(each -> consumer.position(each.getKey()) >= each.getValue());
    }
}
