package app;

import com.nimbusds.jose.jwk.JWK;
import java.net.URI;
import java.text.ParseException;
import java.util.List;
import java.util.Map;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.context.annotation.Bean;
import org.springframework.security.config.annotation.web.builders.HttpSecurity;
import org.springframework.security.core.annotation.AuthenticationPrincipal;
import org.springframework.security.oauth2.client.OAuth2AuthorizedClient;
import org.springframework.security.oauth2.client.annotation.RegisteredOAuth2AuthorizedClient;
import org.springframework.security.oauth2.client.endpoint.*;
import org.springframework.security.oauth2.client.registration.ClientRegistration;
import org.springframework.security.oauth2.client.registration.ClientRegistrationRepository;
import org.springframework.security.oauth2.client.web.DefaultOAuth2AuthorizationRequestResolver;
import org.springframework.security.oauth2.client.web.OAuth2AuthorizationRequestCustomizers;
import org.springframework.security.oauth2.core.oidc.user.OidcUser;
import org.springframework.security.web.SecurityFilterChain;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;

/** A Spring Boot app that authenticates by a key: a sign-in, a refresh, and a token of the app itself. */
@SpringBootApplication
@RestController
public class App {
  private static final String REGISTRATION = "spring.security.oauth2.client.registration.";

  public static void main(String[] args) {
    var env = System.getenv();
    var app = new SpringApplication(App.class);
    app.setDefaultProperties(Map.of(
      "server.port", URI.create(env.get("ORIGIN")).getPort(),
      "spring.security.oauth2.client.provider.identity.issuer-uri", env.get("ISSUER"),
      REGISTRATION + "identity.client-id", env.get("CLIENT_ID"),
      REGISTRATION + "identity.client-authentication-method", "private_key_jwt",
      REGISTRATION + "identity.scope", "openid,profile,email,offline_access",
      REGISTRATION + "own.provider", "identity",
      REGISTRATION + "own.client-id", env.get("CLIENT_ID"),
      REGISTRATION + "own.client-authentication-method", "private_key_jwt",
      REGISTRATION + "own.authorization-grant-type", "client_credentials"));
    app.run(args);
  }

  private static JWK readKey(ClientRegistration registration) {
    try {
      return JWK.parse(System.getenv("CLIENT_JWK"));
    } catch (ParseException error) {
      throw new IllegalStateException(error);
    }
  }

  private static <T extends AbstractOAuth2AuthorizationGrantRequest> NimbusJwtClientAuthenticationParametersConverter<T> sign() {
    var converter = new NimbusJwtClientAuthenticationParametersConverter<T>(App::readKey);
    var audience = System.getenv("AUDIENCE");
    if (audience != null) converter.setJwtClientAssertionCustomizer(context -> context.getClaims().audience(List.of(audience)));
    return converter;
  }

  @Bean
  RestClientAuthorizationCodeTokenResponseClient codes() {
    var client = new RestClientAuthorizationCodeTokenResponseClient();
    client.addParametersConverter(sign());
    return client;
  }

  @Bean
  RestClientRefreshTokenTokenResponseClient refreshes() {
    var client = new RestClientRefreshTokenTokenResponseClient();
    client.addParametersConverter(sign());
    return client;
  }

  @Bean
  RestClientClientCredentialsTokenResponseClient own() {
    var client = new RestClientClientCredentialsTokenResponseClient();
    client.addParametersConverter(sign());
    return client;
  }

  @Bean
  SecurityFilterChain security(HttpSecurity http, ClientRegistrationRepository clients) throws Exception {
    var resolver = new DefaultOAuth2AuthorizationRequestResolver(clients, "/oauth2/authorization");
    resolver.setAuthorizationRequestCustomizer(OAuth2AuthorizationRequestCustomizers.withPkce());
    return http.authorizeHttpRequests(requests -> requests.anyRequest().authenticated())
      .oauth2Login(login -> login.loginPage("/oauth2/authorization/identity").authorizationEndpoint(endpoint -> endpoint.authorizationRequestResolver(resolver)))
      .oauth2Client(client -> {})
      .build();
  }

  @GetMapping("/login")
  Map<String, Object> show(
    @AuthenticationPrincipal OidcUser user,
    @RegisteredOAuth2AuthorizedClient("identity") OAuth2AuthorizedClient tokens,
    @RegisteredOAuth2AuthorizedClient("own") OAuth2AuthorizedClient own
  ) {
    var request = new OAuth2RefreshTokenGrantRequest(tokens.getClientRegistration(), tokens.getAccessToken(), tokens.getRefreshToken());
    var fresh = refreshes().getTokenResponse(request).getAccessToken();
    return Map.of(
      "profile", Map.of("sub", user.getSubject(), "name", user.getFullName(), "email", user.getEmail()),
      "refreshed", !fresh.getTokenValue().equals(tokens.getAccessToken().getTokenValue()),
      "own", own.getAccessToken().getTokenValue() != null);
  }
}
