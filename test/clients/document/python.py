"""A client by openapi-python-client: prints what it got."""
from base64 import b64encode
from json import dumps
from os import environ
from urllib.parse import parse_qs

from fastify_identity_client import AuthenticatedClient
from fastify_identity_client.api.oauth import request_token
from fastify_identity_client.api.user import create_user, get_profile, get_user, list_users, patch_user
from fastify_identity_client.models import (
    CreateUser, CreateUserData, PatchUser, PatchUserData, PatchUserDataRoles, RequestTokenBody,
)


def connect(token, prefix='Bearer'):
    return AuthenticatedClient(base_url=environ['URL'], token=token, prefix=prefix)


admin = connect(environ['TOKEN'])
user_id = create_user.sync(
    client=admin, body=CreateUser(data=CreateUserData(account='python@example.com', password='a password of this test')),
).data.user_id

credentials = f"{environ['CLIENT_ID']}:{environ['CLIENT_SECRET']}"
basic = connect(b64encode(credentials.encode()).decode(), 'Basic')
tokens = request_token.sync(client=basic, body=RequestTokenBody(
    grant_type='authorization_code', code=environ['CODE'], code_verifier=environ['VERIFIER'], redirect_uri=environ['REDIRECT_URI'],
))
profile = get_profile.sync(client=connect(tokens.access_token)).data

users = []
query = {}
while query is not None:
    page = list_users.sync_detailed(client=admin, sort='created:desc', limit=2, fields='disabled', **query)
    users += page.parsed.data
    link = page.headers.get('link')
    query = None if link is None else {'after': parse_qs(link[2:link.index('>')])['after'][0]}

roles = PatchUserDataRoles()
roles['editor'] = True
changed = patch_user.sync_detailed(user_id, client=admin, body=PatchUser(data=PatchUserData(roles=roles), disable=True))
refused = get_user.sync('nobody', client=admin)
wrong = request_token.sync(client=basic, body=RequestTokenBody(grant_type='refresh_token', refresh_token='x'))

print(dumps({
    'created': any(user.user_id == user_id and user.disabled_at is None for user in users),
    'account': profile.account,
    'pages': [user.account for user in users],
    'changed': changed.status_code,
    'code': refused.code,
    'oauth': wrong.error,
}))
