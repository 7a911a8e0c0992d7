// A web app with golang.org/x/oauth2 and a secret: a sign-in, a refresh, and a token of the app itself.
package main

import (
	"context"
	"encoding/json"
	"io"
	"log"
	"net/http"
	"net/url"
	"os"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"
)

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func main() {
	ctx, origin, endpoint := context.Background(), os.Getenv("ORIGIN"), os.Getenv("ISSUER")+"/api/v1/auth/"
	config := oauth2.Config{
		ClientID: os.Getenv("CLIENT_ID"), ClientSecret: os.Getenv("CLIENT_SECRET"), RedirectURL: origin + "/callback",
		Scopes:   []string{"openid", "profile", "email", "offline_access"},
		Endpoint: oauth2.Endpoint{AuthURL: endpoint + "authorize", TokenURL: endpoint + "token"},
	}
	own := clientcredentials.Config{ClientID: config.ClientID, ClientSecret: config.ClientSecret, TokenURL: config.Endpoint.TokenURL}
	verifier := oauth2.GenerateVerifier()

	http.HandleFunc("/login", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, config.AuthCodeURL("state", oauth2.S256ChallengeOption(verifier)), http.StatusFound)
	})
	http.HandleFunc("/callback", func(w http.ResponseWriter, r *http.Request) {
		token := must(config.Exchange(ctx, r.FormValue("code"), oauth2.VerifierOption(verifier)))
		expired := *token
		expired.Expiry = time.Now().Add(-time.Hour)
		source := config.TokenSource(ctx, &expired)
		fresh := must(source.Token())
		answer := must(oauth2.NewClient(ctx, source).Get(endpoint + "userinfo"))
		w.Header().Set("content-type", "application/json")
		must(0, json.NewEncoder(w).Encode(map[string]any{
			"profile":   json.RawMessage(must(io.ReadAll(answer.Body))),
			"refreshed": fresh.AccessToken != token.AccessToken, "own": must(own.Token(ctx)).Valid(),
		}))
	})
	log.Fatal(http.ListenAndServe(must(url.Parse(origin)).Host, nil))
}
