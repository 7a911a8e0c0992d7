"""An API that verifies JWT access tokens by Authlib's validator for RFC 9068."""
from os import environ
from urllib.parse import urlsplit

import requests
from authlib.integrations.flask_oauth2 import ResourceProtector, current_token
from authlib.oauth2.rfc9068 import JWTBearerTokenValidator
from flask import Flask

issuer = environ['ISSUER']


class Validator(JWTBearerTokenValidator):
    def get_jwks(self):
        return requests.get(requests.get(issuer + '/.well-known/openid-configuration').json()['jwks_uri']).json()


app = Flask(__name__)
require = ResourceProtector()
require.register_token_validator(Validator(issuer=issuer, resource_server=environ['AUDIENCE']))


@app.get('/')
@require()
def show():
    return dict(current_token)


app.run(port=urlsplit(environ['ORIGIN']).port)
