import { randomBytes } from 'node:crypto'
import t from 'tap'
import { showClient } from '../../lib/clients/show-client.ts'
import { createSecretBox } from '../../lib/crypto/secrets.ts'
import type { ClientRecord, UserRecord } from '../../lib/records.ts'
import { createRenderers } from '../../lib/renderers.ts'
import { showItemOf } from '../../lib/users/show-user.ts'
import { ClientSchema } from '../../schemas/client.ts'
import { UserItemSchema } from '../../schemas/user.ts'

const box = createSecretBox(randomBytes(32))
const renderers = createRenderers({ key: box.key })

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
  first_party: true,
  epoch: 12
}
const USER: UserRecord = {
  id: ID, account: 'ann', created_at: TIME, modified_at: TIME, verified_at: TIME, expired_at: TIME, disabled_at: TIME, roles: { admin: true }, password: 'salt and hash', name: 'Ann', info: { a: 1 }, epoch: 1, revision: 2, bootstrap: 'x'
}

t.test('a rendered client has the fields of the schema that the caller may see, and no other', (t) => {
  const fields = Object.keys(ClientSchema.properties)
  const render = (record: ClientRecord, isAdmin: boolean) => JSON.parse(renderers.clients({ isAdmin })(record)) as Record<string, unknown>
  t.strictSame(Object.keys(render(CLIENT, true)), fields)
  t.strictSame(Object.keys(render(CLIENT, false)), fields.filter((field) => field !== 'userId'))
  t.equal(render(CLIENT, false).clientSecret, '0123456789abcdef')
  const { secret: _secret, image: _image, ...bare } = CLIENT
  t.strictSame(Object.keys(render(bare, true)), fields.filter((field) => field !== 'clientSecret' && field !== 'image'))
  for (const isAdmin of [true, false]) t.equal(renderers.clients({ isAdmin })(CLIENT), JSON.stringify(showClient(CLIENT, isAdmin, box.open)))
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

t.test('a secret that does not open is an error that tells nothing', (t) => {
  const other = createSecretBox(randomBytes(32)).seal('0123456789abcdef', ID)
  for (const secret of [other, box.seal('0123456789abcdef', 'another id'), `${CLIENT.secret!.slice(0, -4)}AAAA`, 'v1', '']) {
    t.throws(() => renderers.clients({ isAdmin: true })({ ...CLIENT, secret }), { code: 'ErrInternal', message: 'a stored secret cannot be opened' })
  }
  t.end()
})
