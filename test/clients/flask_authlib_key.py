"""Authlib in a Flask app that authenticates by a key: the assertion is for the token endpoint, or for AUDIENCE."""
from os import environ
from urllib.parse import urlsplit

from authlib.integrations.flask_client import OAuth
from authlib.oauth2.rfc7523 import PrivateKeyJWT
from flask import Flask

origin = environ['ORIGIN']
app = Flask(__name__)
app.secret_key = 'signs the cookie of this test'
identity = OAuth(app).register(
    'identity',
    client_id=environ['CLIENT_ID'],
    client_secret=environ['CLIENT_KEY'],
    server_metadata_url=environ['ISSUER'] + '/.well-known/openid-configuration',
    client_auth_methods=[PrivateKeyJWT(environ.get('AUDIENCE'))],
    client_kwargs={
        'scope': 'openid profile email offline_access',
        'code_challenge_method': 'S256',
        'token_endpoint_auth_method': 'private_key_jwt',
    },
)


@app.get('/login')
def login():
    return identity.authorize_redirect(origin + '/callback')


@app.get('/callback')
def callback():
    token = identity.authorize_access_token()
    fresh = identity.fetch_access_token(grant_type='refresh_token', refresh_token=token['refresh_token'])
    profile = identity.userinfo(token=fresh)
    return {'claims': token['userinfo'], 'profile': profile, 'refreshed': fresh['access_token'] != token['access_token']}


app.run(port=urlsplit(origin).port)
