// An API that verifies JWT access tokens by golang-jwt.
package main

import (
	"encoding/json"
	"log"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/MicahParks/keyfunc/v3"
	"github.com/golang-jwt/jwt/v5"
)

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func main() {
	issuer := os.Getenv("ISSUER")
	reply := must(http.Get(issuer + "/.well-known/openid-configuration"))
	var metadata struct {
		KeysURL string `json:"jwks_uri"`
	}
	must(0, json.NewDecoder(reply.Body).Decode(&metadata))
	keys := must(keyfunc.NewDefault([]string{metadata.KeysURL}))

	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		_, text, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		token, err := jwt.Parse(text, keys.Keyfunc, jwt.WithValidMethods([]string{os.Getenv("ALG")}),
			jwt.WithIssuer(issuer), jwt.WithAudience(os.Getenv("AUDIENCE")), jwt.WithExpirationRequired())
		if err != nil || token.Header["typ"] != "at+jwt" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		must(0, json.NewEncoder(w).Encode(token.Claims))
	})
	log.Fatal(http.ListenAndServe(must(url.Parse(os.Getenv("ORIGIN"))).Host, nil))
}
