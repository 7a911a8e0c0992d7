// A web app with zitadel/oidc that authenticates by a key: at the token, revocation and introspection endpoints.
package main

import (
	"context"
	"encoding/json"
	"log"
	"net/http"
	"net/url"
	"os"

	"github.com/go-jose/go-jose/v4"
	"github.com/zitadel/oidc/v3/pkg/client"
	"github.com/zitadel/oidc/v3/pkg/client/rp"
	"github.com/zitadel/oidc/v3/pkg/client/rs"
	httphelper "github.com/zitadel/oidc/v3/pkg/http"
	"github.com/zitadel/oidc/v3/pkg/oidc"
)

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func main() {
	ctx, origin, issuer, id, key := context.Background(), os.Getenv("ORIGIN"), os.Getenv("ISSUER"), os.Getenv("CLIENT_ID"), []byte(os.Getenv("CLIENT_KEY"))
	signer := func() (jose.Signer, error) { return client.NewSignerFromPrivateKeyByte(key, "") }
	cookies := httphelper.NewCookieHandler([]byte("signs the cookies of this test.."), nil, httphelper.WithUnsecure())
	app := must(rp.NewRelyingPartyOIDC(ctx, issuer, id, "", origin+"/callback", []string{"openid", "profile", "email", "offline_access"},
		rp.WithPKCE(cookies), rp.WithJWTProfile(signer)))
	api := must(rs.NewResourceServerJWTProfile(ctx, issuer, id, "", key))
	isActive := func(token string) bool {
		return must(rs.Introspect[*oidc.IntrospectionResponse](ctx, api, token)).Active
	}

	http.Handle("/login", rp.AuthURLHandler(func() string { return "state" }, app))
	http.Handle("/callback", rp.CodeExchangeHandler(func(w http.ResponseWriter, r *http.Request, tokens *oidc.Tokens[*oidc.IDTokenClaims], _ string, _ rp.RelyingParty) {
		fresh := must(rp.RefreshTokens[*oidc.IDTokenClaims](ctx, app, tokens.RefreshToken, "", ""))
		profile := must(rp.Userinfo[*oidc.UserInfo](ctx, fresh.AccessToken, "Bearer", tokens.IDTokenClaims.Subject, app))
		before := isActive(fresh.AccessToken)
		if err := rp.RevokeToken(ctx, app, fresh.RefreshToken, "refresh_token"); err != nil {
			panic(err)
		}
		w.Header().Set("content-type", "application/json")
		must(0, json.NewEncoder(w).Encode(map[string]any{
			"profile":   map[string]string{"sub": profile.Subject, "name": profile.Name, "email": profile.Email},
			"refreshed": fresh.AccessToken != tokens.AccessToken, "before": before, "after": isActive(fresh.AccessToken),
		}))
	}, app))
	log.Fatal(http.ListenAndServe(must(url.Parse(origin)).Host, nil))
}
