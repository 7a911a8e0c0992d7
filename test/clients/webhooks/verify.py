"""Verifies the messages on stdin, a line of JSON each, with the unmodified library: `pip install standardwebhooks`."""
import json
import sys

from standardwebhooks import Webhook, WebhookVerificationError

for line in sys.stdin:
    message = json.loads(line)
    try:
        Webhook(message["secret"]).verify(message["body"], message["headers"])
        verified = True
    except WebhookVerificationError:
        verified = False
    print("ok" if verified == message["valid"] else "not ok", message["name"])
