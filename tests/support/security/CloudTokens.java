import java.net.URI;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.time.Instant;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.Base64;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;
import javax.security.auth.callback.Callback;
import javax.security.auth.callback.UnsupportedCallbackException;
import javax.security.auth.login.AppConfigurationEntry;
import org.apache.kafka.common.security.auth.AuthenticateCallbackHandler;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerToken;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallback;

/**
 * Validates tokens as the brokers of cloud services do: presigned requests of Amazon MSK by Signature Version 4, and
 * access tokens in the form of Google Cloud. What it knows comes by system properties: `tests.aws.region`,
 * `tests.aws.key.ID` (a secret), `tests.aws.session.ID` (a session token), `tests.google.TOKEN` (a principal).
 */
public class CloudTokens implements AuthenticateCallbackHandler {
    private static final DateTimeFormatter AMZ = DateTimeFormatter.ofPattern("yyyyMMdd'T'HHmmss'Z'").withZone(ZoneOffset.UTC);
    private static final Pattern CLAIM = Pattern.compile("\"(exp|sub|iss)\": *\"?([^\",}]+)");

    @Override
    public void configure(Map<String, ?> configs, String mechanism, List<AppConfigurationEntry> entries) {
    }

    @Override
    public void close() {
    }

    @Override
    public void handle(Callback[] callbacks) throws UnsupportedCallbackException {
        for (Callback callback : callbacks) {
            if (!(callback instanceof OAuthBearerValidatorCallback asked)) {
                throw new UnsupportedCallbackException(callback);
            }
            try {
                String value = asked.tokenValue();
                asked.token(value.contains(".") ? google(value) : msk(value));
            } catch (Exception refused) {
                asked.error("invalid_token", null, null);
            }
        }
    }

    private static OAuthBearerToken msk(String value) throws Exception {
        URI url = new URI(new String(Base64.getUrlDecoder().decode(value), StandardCharsets.UTF_8));
        Map<String, String> raw = new TreeMap<>();
        for (String pair : url.getRawQuery().split("&")) {
            String[] parts = pair.split("=", 2);
            raw.put(parts[0], parts[1]);
        }
        raw.remove("User-Agent");
        String signature = raw.remove("X-Amz-Signature");
        String[] scope = decoded(raw.get("X-Amz-Credential")).split("/");
        String date = raw.get("X-Amz-Date");
        Instant signed = Instant.from(AMZ.parse(date));
        long ends = signed.plusSeconds(Long.parseLong(raw.get("X-Amz-Expires"))).toEpochMilli();
        String region = System.getProperty("tests.aws.region");
        String secret = System.getProperty("tests.aws.key." + scope[0]);
        String session = System.getProperty("tests.aws.session." + scope[0]);
        String given = raw.get("X-Amz-Security-Token");
        check(secret != null && ends > System.currentTimeMillis());
        check(url.getHost().equals("kafka." + region + ".amazonaws.com") && scope[2].equals(region));
        check(scope[3].equals("kafka-cluster") && decoded(raw.get("Action")).equals("kafka-cluster:Connect"));
        check(session == null ? given == null : given != null && session.equals(decoded(given)));
        StringBuilder query = new StringBuilder();
        raw.forEach((name, each) -> query.append(query.length() == 0 ? "" : "&").append(name).append("=").append(each));
        String canonical = String.join("\n", "GET", "/", query, "host:" + url.getHost(), "", "host", hex(hash("")));
        byte[] key = ("AWS4" + secret).getBytes(StandardCharsets.UTF_8);
        for (int part = 1; part < scope.length; part++) {
            key = hmac(key, scope[part]);
        }
        String place = String.join("/", scope[1], scope[2], scope[3], scope[4]);
        check(hex(hmac(key, String.join("\n", "AWS4-HMAC-SHA256", date, place, hex(hash(canonical))))).equals(signature));
        return token(value, scope[0], ends);
    }

    private static OAuthBearerToken google(String value) {
        String[] parts = value.split("\\.");
        String[] texts = new String[3];
        for (int part = 0; part < 3; part++) {
            texts[part] = new String(Base64.getUrlDecoder().decode(parts[part]), StandardCharsets.UTF_8);
        }
        check(texts[0].contains("GOOG_OAUTH2_TOKEN"));
        Map<String, String> claims = new TreeMap<>();
        Matcher found = CLAIM.matcher(texts[1]);
        while (found.find()) {
            claims.put(found.group(1), found.group(2));
        }
        long ends = (long) (Double.parseDouble(claims.get("exp")) * 1000);
        check(claims.get("iss").equals("Google") && ends > System.currentTimeMillis());
        check(claims.get("sub").equals(System.getProperty("tests.google." + texts[2])));
        return token(value, claims.get("sub"), ends);
    }

    private static void check(boolean holds) {
        if (!holds) {
            throw new IllegalArgumentException();
        }
    }

    private static String decoded(String text) {
        return URLDecoder.decode(text, StandardCharsets.UTF_8);
    }

    private static byte[] hash(String text) throws Exception {
        return MessageDigest.getInstance("SHA-256").digest(text.getBytes(StandardCharsets.UTF_8));
    }

    private static byte[] hmac(byte[] key, String text) throws Exception {
        Mac mac = Mac.getInstance("HmacSHA256");
        mac.init(new SecretKeySpec(key, "HmacSHA256"));
        return mac.doFinal(text.getBytes(StandardCharsets.UTF_8));
    }

    private static String hex(byte[] bytes) {
        return HexFormat.of().formatHex(bytes);
    }

    private static OAuthBearerToken token(String value, String principal, long ends) {
        return new OAuthBearerToken() {
            @Override
            public String value() {
                return value;
            }

            @Override
            public Set<String> scope() {
                return Set.of();
            }

            @Override
            public long lifetimeMs() {
                return ends;
            }

            @Override
            public String principalName() {
                return principal;
            }

            @Override
            public Long startTimeMs() {
                return null;
            }
        };
    }
}
