"""requests-oauthlib in a Flask app."""
from os import environ
from urllib.parse import urlsplit

from flask import Flask, redirect, request, session
from requests_oauthlib import OAuth2Session

# The library accepts no plain http without this.
environ['OAUTHLIB_INSECURE_TRANSPORT'] = '1'

origin = environ['ORIGIN']
endpoint = environ['ISSUER'] + '/api/v1/auth/'
app = Flask(__name__)
app.secret_key = 'signs the cookie of this test'


def open_session(**options):
    return OAuth2Session(environ['CLIENT_ID'], redirect_uri=origin + '/callback', scope=['openid', 'profile', 'email', 'offline_access'], **options)


@app.get('/login')
def login():
    url, session['state'] = open_session().authorization_url(endpoint + 'authorize')
    return redirect(url)


@app.get('/callback')
def callback():
    identity = open_session(state=session['state'])
    token = identity.fetch_token(endpoint + 'token', client_secret=environ['CLIENT_SECRET'], authorization_response=request.url)
    fresh = identity.refresh_token(endpoint + 'token', auth=(environ['CLIENT_ID'], environ['CLIENT_SECRET']))
    profile = identity.get(endpoint + 'userinfo').json()
    return {'profile': profile, 'refreshed': fresh['access_token'] != token['access_token']}


app.run(port=urlsplit(origin).port)
