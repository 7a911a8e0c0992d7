package app;

import java.net.URI;
import java.util.Map;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.context.annotation.Bean;
import org.springframework.security.config.Customizer;
import org.springframework.security.config.annotation.web.builders.HttpSecurity;
import org.springframework.security.core.annotation.AuthenticationPrincipal;
import org.springframework.security.oauth2.jose.jws.SignatureAlgorithm;
import org.springframework.security.oauth2.jwt.Jwt;
import org.springframework.security.oauth2.jwt.JwtClaimNames;
import org.springframework.security.oauth2.jwt.JwtDecoder;
import org.springframework.security.oauth2.jwt.JwtValidators;
import org.springframework.security.oauth2.jwt.NimbusJwtDecoder;
import org.springframework.security.web.SecurityFilterChain;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;

/** An API that verifies JWT access tokens as a resource server of Spring Security. */
@SpringBootApplication
@RestController
public class Api {
  public static void main(String[] args) {
    var app = new SpringApplication(Api.class);
    app.setDefaultProperties(Map.of("server.port", URI.create(System.getenv("ORIGIN")).getPort()));
    app.run(args);
  }

  @Bean
  JwtDecoder decoder() {
    var env = System.getenv();
    var decoder = NimbusJwtDecoder.withIssuerLocation(env.get("ISSUER")).jwsAlgorithm(SignatureAlgorithm.from(env.get("ALG"))).validateType(false).build();
    decoder.setJwtValidator(JwtValidators.createAtJwtValidator()
      .issuer(env.get("ISSUER"))
      .audience(env.get("AUDIENCE"))
      .build());
    return decoder;
  }

  @Bean
  SecurityFilterChain security(HttpSecurity http) throws Exception {
    return http.authorizeHttpRequests(requests -> requests.anyRequest().authenticated())
      .oauth2ResourceServer(server -> server.jwt(Customizer.withDefaults()))
      .build();
  }

  @GetMapping("/")
  Map<String, Object> show(@AuthenticationPrincipal Jwt token) {
    return Map.of(
      "sub", token.getSubject(), "client_id", token.getClaim("client_id"), "scope", token.getClaim("scope"), "aud", token.getAudience(),
      "jti", token.getId(), "exp", token.getClaimAsInstant(JwtClaimNames.EXP).getEpochSecond());
  }
}
