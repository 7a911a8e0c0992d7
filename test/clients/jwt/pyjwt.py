"""An API that verifies JWT access tokens by PyJWT."""
import json
from http.server import BaseHTTPRequestHandler, HTTPServer
from os import environ
from urllib.parse import urlsplit
from urllib.request import urlopen

import jwt

issuer = environ['ISSUER']
with urlopen(issuer + '/.well-known/openid-configuration') as reply:
    keys = jwt.PyJWKClient(json.load(reply)['jwks_uri'])


def verify(token):
    if jwt.get_unverified_header(token).get('typ') != 'at+jwt':
        raise jwt.InvalidTokenError('the type is not at+jwt')
    return jwt.decode(
        token, keys.get_signing_key_from_jwt(token), algorithms=[environ['ALG']], audience=environ['AUDIENCE'], issuer=issuer,
        options={'require': ['exp', 'iat', 'iss', 'aud', 'sub', 'client_id', 'jti']}
    )


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        try:
            status, text = 200, json.dumps(verify(self.headers.get('Authorization', '').partition(' ')[2]))
        except jwt.PyJWTError as error:
            status, text = 401, str(error)
        self.send_response(status)
        self.end_headers()
        self.wfile.write(text.encode())


HTTPServer(('127.0.0.1', urlsplit(environ['ORIGIN']).port), Handler).serve_forever()
