import { randomBytes } from 'node:crypto'
import t from 'tap'
import { type ClientView, showClientTo } from '../../lib/clients/show-client.ts'
import { createSecretBox } from '../../lib/crypto/secrets.ts'
import type { ClientRecord } from '../../lib/records/client.ts'
import type { UserRecord } from '../../lib/records/user.ts'
import { createRenderers } from '../../lib/renderers.ts'
import { showItemOf } from '../../lib/users/show-user.ts'
import { ClientSchema } from '../../schemas/client.ts'
import { UserItemSchema } from '../../schemas/user.ts'

const box = createSecretBox(randomBytes(32))
const renderers = createRenderers({ keys: box.keys })

const ID = '01J87IMPFF4VT1FJ9UFVGONNID00000001'
const TIME = '2126-01-01T00:00:00.000Z'
const CLIENT: ClientRecord = {
  id: ID,
  createdAt: TIME,
  modifiedAt: TIME,
  secret: box.seal('0123456789abcdef', ID),
  redirectUris: ['https://a.example/callback'],
  scopes: ['openid'],
  userId: '01J8HUOW143MVL0YHF0SLGUEJD00000000',
  name: 'Äpfel & "\u{1F34F}"',
  image: 'https://a.example/logo.png',
  tokenAuth: 'private_key_jwt',
  former_auth: { method: 'secret', until: TIME },
  keys: [],
  profile: 'fapi2',
  idTokenAlg: 'ES256',
  signedRequests: 'required',
  document: { id: 'hash', hash: 'hash', print: 'print', method: 'none', used_at: TIME },
  grants: ['code'],
  pkce: 'optional',
  first_party: true,
  roles: { robot: true },
  disabled_at: TIME,
  id_token_claims: true,
  claims: { tenant: { from: 'attributes.tenant', in: ['userinfo'] } },
  backchannelLogoutUri: 'https://a.example/logout',
  epoch: 12
}
const USER: UserRecord = {
  id: ID, account: 'ann', created_at: TIME, modified_at: TIME, verified_at: TIME, email: 'ann@example.com', email_verified_at: TIME, email_verified_by: 'mail', expired_at: TIME, disabled_at: TIME, roles: { admin: true }, password: 'salt and hash', name: 'Ann', info: { a: 1 }, attributes: { b: 2 }, epoch: 1, revision: 2, bootstrap: 'x'
}

t.test('a rendered client has the fields of the schema that the caller may see, and no other', (t) => {
  const fields = Object.keys(ClientSchema.properties)
  const view = (rest: Partial<ClientView> = {}): ClientView => ({ isAdmin: true, secrets: 'all', user_id: CLIENT.userId!, ...rest })
  const render = (record: ClientRecord, rest: Partial<ClientView> = {}) => JSON.parse(renderers.clients(view(rest))(record)) as Record<string, unknown>
  const without = (...missing: string[]) => fields.filter((field) => !missing.includes(field))
  t.strictSame(Object.keys(render(CLIENT)), without('confidential'))
  t.strictSame(Object.keys(render(CLIENT, { isAdmin: false })), without('confidential', 'userId'))
  const hidden = without('clientSecret')
  t.strictSame(Object.keys(render(CLIENT, { secrets: 'none' })), hidden)
  const { document: _document, ...vouched } = CLIENT
  t.strictSame(Object.keys(render(vouched, { secrets: 'own' })), hidden.filter((field) => field !== 'document'), 'the operator vouches for it')
  const { first_party: _first, roles: _roles, ...plain } = vouched
  t.equal(render(plain, { secrets: 'own' }).clientSecret, '0123456789abcdef')
  t.equal(render(plain, { secrets: 'own', user_id: 'other' }).clientSecret, undefined)
  t.equal(render({ ...plain, scopes: ['rare'], admin_scopes: ['rare'] }, { secrets: 'own' }).clientSecret, undefined)
  const { secret: _secret, image: _image, tokenAuth: _tokenAuth, ...bare } = CLIENT
  t.strictSame(Object.keys(render(bare)), without('clientSecret', 'confidential', 'image', 'tokenAuth'))
  for (const isAdmin of [true, false]) t.equal(renderers.clients(view({ isAdmin }))(CLIENT), JSON.stringify(showClientTo(view({ isAdmin }), box.open)(CLIENT)))
  t.end()
})

t.test('a rendered user has the fields of the schema that the query asks for, and no other', (t) => {
  const fields = Object.keys(UserItemSchema.properties)
  for (const [asked, missing] of [[undefined, ['expired_at', 'disabled_at']], ['disabled', ['expired_at']], ['expired,disabled', []]] as const) {
    const text = renderers.users({ fields: asked })(USER)
    t.strictSame(Object.keys(JSON.parse(text)), fields.filter((field) => !(missing as readonly string[]).includes(field)))
    t.equal(text, JSON.stringify(showItemOf(asked)(USER)))
  }
  t.end()
})

t.test('a secret that does not open is an error without its text', (t) => {
  const other = createSecretBox(randomBytes(32)).seal('0123456789abcdef', ID)
  for (const secret of [other, box.seal('0123456789abcdef', 'another id'), `${CLIENT.secret!.slice(0, -4)}AAAA`, 'v1', '']) {
    t.throws(() => renderers.clients({ isAdmin: true, secrets: 'all', user_id: '' })({ ...CLIENT, secret }), { code: 'ErrInternal', message: 'a stored secret cannot be opened' })
  }
  t.end()
})
