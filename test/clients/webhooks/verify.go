// Verifies the messages on stdin, a line of JSON each, with the unmodified library of Standard Webhooks.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"os"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

type message struct {
	Name, Secret, Body string
	Headers            map[string]string
	Valid              bool
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var one message
		if err := json.Unmarshal(lines.Bytes(), &one); err != nil {
			panic(err)
		}
		webhook, err := standardwebhooks.NewWebhook(one.Secret)
		if err != nil {
			panic(err)
		}
		headers := http.Header{}
		for name, value := range one.Headers {
			headers.Set(name, value)
		}
		result := "not ok"
		if (webhook.Verify([]byte(one.Body), headers) == nil) == one.Valid {
			result = "ok"
		}
		fmt.Println(result, one.Name)
	}
}
