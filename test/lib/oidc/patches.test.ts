import { readFileSync } from 'node:fs'
import { Provider, errors } from 'oidc-provider'
import t from 'tap'
import { TESTED_VERSION, checkPatches, patchProvider } from '../../../lib/oidc/patches.ts'

const issuer = new URL('http://127.0.0.1')

t.test('package.json pins the release that is tested', async (t) => {
  const { dependencies } = JSON.parse(readFileSync('package.json', 'utf8'))
  t.equal(dependencies['oidc-provider'], TESTED_VERSION)
})

t.test('boot fails when oidc-provider lacks a name that we patch', async (t) => {
  const create = () => {
    const { request, OIDCContext, Client, IdToken, Claims, AccessToken, ClientCredentials } = new Provider(issuer.href) as unknown as Record<'request' | 'OIDCContext' | 'Client' | 'IdToken' | 'Claims' | 'AccessToken' | 'ClientCredentials', { prototype: object }>
    return { request: { ...Object.getOwnPropertyDescriptors(request), protocol: '', host: '', ip: '' } as object, OIDCContext, Client, IdToken, Claims, AccessToken, ClientCredentials }
  }
  const names = {
    request: ['protocol', 'host', 'ip'],
    OIDCContext: ['requestParamScopes', 'requestParamOIDCScopes'],
    Client: ['redirectUriAllowed', 'postLogoutRedirectUriAllowed', 'backchannelLogout', 'compareClientSecret'],
    IdToken: ['issue'],
    Claims: ['result']
  }
  for (const [part, members] of Object.entries(names)) {
    for (const name of members) {
      const provider = create()
      const holder = (part === 'request' ? provider.request : provider[part as 'Client'].prototype) as Record<string, unknown>
      t.ok(name in holder, name)
      t.ok(delete holder[name])
      t.throws(() => patchProvider(provider as unknown as Provider, issuer, errors, { tellOfSignOut: async () => {}, isSecret: async () => false, isSpent: () => false, takeText: () => undefined, findClient: async () => undefined }), { message: new RegExp(`oidc-provider has no ${name}`) }, name)
    }
  }
})

t.test('another release is checked at boot', async (t) => {
  t.capture(console, 'info')
  t.capture(console, 'warn')
  await t.resolves(checkPatches('9.99.0'))
  await t.resolves(checkPatches())
})
