"""Authlib in a Flask app."""
from os import environ
from urllib.parse import urlsplit

from authlib.integrations.flask_client import OAuth
from flask import Flask

origin = environ['ORIGIN']
app = Flask(__name__)
app.secret_key = 'signs the cookie of this test'
identity = OAuth(app).register(
    'identity',
    client_id=environ['CLIENT_ID'],
    client_secret=environ['CLIENT_SECRET'],
    server_metadata_url=environ['ISSUER'] + '/.well-known/openid-configuration',
    client_kwargs={'scope': 'openid profile email offline_access'},
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
