import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.errors.PolicyViolationException;
import org.apache.kafka.server.policy.AlterConfigPolicy;
import org.apache.kafka.server.policy.CreateTopicPolicy;

/**
 * A managed service's policies: topics may have the configs that the system property `tests.allowed` lists (`NAME`, or
 * `NAME<=N` for values up to a number), and no others.
 */
public class ManagedService implements CreateTopicPolicy, AlterConfigPolicy {
    @Override
    public void configure(Map<String, ?> configs) {
    }

    @Override
    public void close() {
    }

    @Override
    public void validate(CreateTopicPolicy.RequestMetadata request) {
        // Brokers make their own topics by such a request too.
        if (!request.topic().startsWith("__")) {
            check(request.configs());
        }
    }

    @Override
    public void validate(AlterConfigPolicy.RequestMetadata request) {
        if (!request.resource().name().startsWith("__")) {
            check(request.configs());
        }
    }

    private static void check(Map<String, String> configs) {
        List<String> allowed = Arrays.asList(System.getProperty("tests.allowed").split(","));
        configs.forEach((name, value) -> {
            boolean fits = allowed.contains(name);
            for (String each : allowed) {
                String[] parts = each.split("<=");
                fits |= parts.length == 2 && parts[0].equals(name) && Long.parseLong(value) <= Long.parseLong(parts[1]);
            }
            if (!fits) {
                throw new PolicyViolationException("Invalid value " + value + " for a topic config.");
            }
        });
    }
}
