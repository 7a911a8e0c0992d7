import { generateKeyPairSync } from 'node:crypto'
import { Readable } from 'node:stream'
import { Type } from '@sinclair/typebox'
import t from 'tap'
import { openServices, type Services } from '../../lib/identity.ts'
import { readConfig } from '../../config.ts'
import { hashToken } from '../../lib/crypto/random-token.ts'
import { ClientSchema, SecretCreatedSchema } from '../../schemas/client.ts'
import { ResourceCreatedSchema } from '../../schemas/resource.ts'
import { UserItemSchema, UserSchema } from '../../schemas/user.ts'
import { WebhookCreatedSchema } from '../../schemas/webhook.ts'
import { createCli } from '../helpers/cli.ts'

/** The services on the same store as the command line, as in a running service. */
async function openBeside (t: { teardown: (fn: () => unknown) => unknown }, dir: string, now = Date.now): Promise<Services> {
  const services = await openServices({ ...readConfig({ DATABASE_URL: `sqlite:${dir}/identity.db`, IDENTITY_BCRYPT_COST: '4', IDENTITY_PASSWORD_MIN: '1' }).services, now })
  t.teardown(() => services.close())
  return services
}

const OPERATOR = { user_id: '', isAdmin: true }

/** The line after what is wrong with a command line. */
const SEE = '\nfastify-identity: see: npm run -s cli -- help '

t.test('bootstrap', async (t) => {
  const dir = t.testdir()
  const run = createCli(dir)
  const services = await openBeside(t, dir)
  const { code, stderr, json } = await run('bootstrap --json --account Root --ttl 60')
  t.equal(code, 0)
  t.equal(stderr, '')
  t.strictSame(Object.keys(json()), ['user_id', 'account', 'password', 'clientId', 'clientSecret', 'access_token'])
  t.equal(json().account, 'root')
  const caller = await services.tokens.authenticate(json().access_token ?? '')
  t.match(caller, { isAdmin: true, user: { account: 'root' }, client: { clientId: json().clientId } })
  t.equal(Date.parse(String(caller.token.expired_at)) - Date.parse(String(caller.token.created_at)), 60_000)
  t.ok(await services.users.verify('root', json().password ?? ''))

  const again = await run('bootstrap')
  t.equal(again.code, 1)
  t.equal(again.stdout, '')
  t.equal(again.stderr, 'fastify-identity: an admin exists: bootstrap only makes the first one\n')
})

t.test('token create', async (t) => {
  const dir = t.testdir()
  const run = createCli(dir)
  const services = await openBeside(t, dir)
  const { user_id } = await services.users.create({ data: { account: 'ann', password: 'p' } })
  const { clientId } = await services.clients.create({ data: { redirectUris: [], scopes: ['read', 'write'], name: 'c', userId: user_id } }, OPERATOR)
  const base = `token create --account ANN --client ${clientId} --json`

  await t.test('by default for an hour, with all scopes', async (t) => {
    const { json } = await run(base)
    t.strictSame({ ...json(), access_token: '' }, { access_token: '', expires_in: 3600 })
    t.match(await services.tokens.authenticate(json().access_token ?? ''), { user: { user_id }, token: { scopes: ['read', 'write'] } })
  })

  await t.test('with the lifetime, the scopes and the refresh token in the flags', async (t) => {
    const { json } = await run([...base.split(' '), '--ttl', '5', '--refresh', '--scopes', 'write, write'])
    t.equal(json().expires_in, 5)
    t.match(await services.tokens.authenticate(json().access_token ?? ''), { token: { scopes: ['write'] } })
    t.match(await services.tokens.find('refresh_tokens', hashToken(json().refresh_token ?? '')), { record: { user_id, scopes: ['write'] } })
  })

  await t.test('with the strength of a sign-in', async (t) => {
    const { json } = await run([...base.split(' '), '--acr', 'mfa'])
    t.match(await services.tokens.authenticate(json().access_token ?? ''), { auth: { acr: 'mfa', amr: ['pwd', 'otp', 'mfa'] } })
    t.match(await run([...base.split(' '), '--acr', '2']), { code: 2, stderr: /--acr: must be one of 1, mfa, phr/ })
  })

  await t.test('without --json, a line for each field', async (t) => {
    t.match((await run(base.replace(' --json', ''))).stdout, /^access_token {2}[\w-]{43}\nexpires_in {4}3600\n$/)
  })

  await t.test('an error names its flag', async (t) => {
    for (const [line, message] of [
      ['token create --account bob --client x', '--account: no user has this account'],
      ['token create --account ann --client x', '--client: no such client'],
      [`${base} --scopes admin`, '--scopes: must be scopes of the client or of the API']
    ] as const) {
      const { code, stdout, stderr } = await run(line)
      t.strictSame({ code, stdout, stderr }, { code: 1, stdout: '', stderr: `fastify-identity: ${message}\n` })
    }
    await services.users.patch(user_id, { disable: true }, OPERATOR)
    t.match(await run(base), { code: 1, stderr: 'fastify-identity: user_id: the user is disabled or expired\n' })
  })
})

t.test('user create', async (t) => {
  const dir = t.testdir()
  const run = createCli(dir)
  const services = await openBeside(t, dir)

  await t.test('a password is generated, and shown once', async (t) => {
    const { code, json } = await run(['user', 'create', '--account', 'Ann', '--name', 'Ann B', '--role', 'manager', '--role', 'x', '--json'])
    t.equal(code, 0)
    t.strictSame(Object.keys(json()), ['user_id', 'account', 'password'])
    t.match(await services.users.verify('ann', json().password ?? ''), { name: 'Ann B', roles: { manager: true, x: true } })
  })

  await t.test('a password on stdin is read without its line ending, and never shown', async (t) => {
    for (const [account, stdin, password] of [['b', 'one two \n', 'one two '], ['c', 'p\r\n', 'p'], ['d', 'p\u00e4ss', 'p\u00e4ss']] as const) {
      const { stdout, json } = await run(`user create --account ${account} --password-stdin --json`, { stdin })
      t.strictSame(Object.keys(json()), ['user_id', 'account'])
      t.notOk(stdout.includes(password.trim()) && password.length > 1)
      t.ok(await services.users.verify(account, password), account)
    }
  })

  await t.test('an error names its flag, and creates no user', async (t) => {
    const before = await services.users.count()
    for (const [line, stdin, message] of [
      ['user create --account ann', '', '--account: a user with this account exists'],
      ['user create --account e --role __proto__', '', '--role: must not have the key __proto__'],
      ['user create --account a!', '', "--account: must be an email address, or letters, digits, '-' and '_' with a letter or digit first"],
      ['user create --account e --password-stdin', Readable.from([Buffer.from('p\xe9', 'latin1')]), '--password-stdin: stdin must be UTF-8' + SEE + 'user create'],
      [['user', 'create', '--account', 'J\ufffdrgen'], '', '--account: must be UTF-8' + SEE + 'user create'],
      ['user create --account e --password-stdin', '', '--password-stdin: must not be empty'],
      ['user create --account e --password-stdin', 'a\nb\n', '--password-stdin: stdin has more than one line' + SEE + 'user create'],
      ['user create --account e --password-stdin', 'x'.repeat(1025), '--password-stdin: must NOT have more than 1024 characters' + SEE + 'user create'],
      ['user create --account e --password-stdin', 'x'.repeat(10_000), '--password-stdin: stdin has more than a password' + SEE + 'user create'],
      [`user create --account e --name ${'x'.repeat(257)}`, '', '--name: must NOT have more than 256 characters' + SEE + 'user create'],
      [['user', 'create', '--account', 'e', '--role', ''], '', '--role: must not have an empty key']
    ] as const) {
      const { code, stdout, stderr } = await run(line as string | string[], { stdin })
      t.strictSame({ code, stdout, stderr }, { code: message.includes(SEE) ? 2 : 1, stdout: '', stderr: `fastify-identity: ${message}\n` }, message)
    }
    t.equal(await services.users.count(), before)
  })

  await t.test('a password is not read from a terminal', async (t) => {
    const stdin = Object.assign(Readable.from(['secret\n']), { isTTY: true })
    t.match(await run('user create --account e --password-stdin', { stdin }), { code: 2, stderr: /--password-stdin: stdin is a terminal/ })
  })
})

t.test('user list', async (t) => {
  const dir = t.testdir()
  const run = createCli(dir)
  const services = await openBeside(t, dir)
  t.equal((await run('user list')).stdout, 'none\n')
  const { user_id } = await services.users.create({ data: { account: 'zoe@example.org', password: 'p', name: 'Zoe' } }, { roles: { admin: true, x: true } })
  // A name that an earlier release accepted.
  await services.store.collection('users').update(user_id, { set: { name: 'Z\u001b[31m\u202eoe' } })
  await services.users.create({ data: { account: 'ann', password: 'p' }, expired_at: '2999-01-01T00:00:00Z' })
  await services.users.create({ data: { account: 'bob', password: 'p' } })
  await services.users.patch((await services.users.getByAccount('bob'))?.user_id ?? '', { disable: true }, OPERATOR)

  const { stdout } = await run('user list')
  t.match(stdout.split('\n'), [
    /^USER_ID {29}ACCOUNT {10}NAME {7}ROLES {4}STATE {29}CREATED$/,
    /^\w{34} {2}ann {34}expires 2999-01-01T00:00:00\.000Z {2}20/,
    /^\w{34} {2}bob {34}disabled/,
    new RegExp(`^${user_id}  zoe@example\\.org  Z\\?\\[31m\\?oe  admin,x  unverified`),
    /^$/
  ], 'a table, without the control characters that a name may hold')

  const items = (await run('user list --json')).json() as unknown as { data: object[] }
  t.match(items, { data: [{ account: 'ann', expired_at: '2999-01-01T00:00:00.000Z' }, { account: 'bob', disabled_at: String }, { user_id, roles: { admin: true }, name: 'Z\u001b[31m\u202eoe' }] })
  t.match((await run('user list --json --contains EXAMPLE')).json(), { data: [{ user_id }] })
  t.match((await run('user list --json --limit 1')).json(), { data: [{ account: 'ann' }] })
})

t.test('user password: the new one is valid, and all tokens end', async (t) => {
  const dir = t.testdir()
  const run = createCli(dir)
  const services = await openBeside(t, dir)
  const { access_token, account } = await services.bootstrap()
  const made = (await run(`user password --account ${account} --json`)).json()
  t.ok(await services.users.verify(account, made.password ?? ''))
  t.throws(() => services.tokens.authenticate(access_token), { code: 'ErrUnknown' })
  const given = await run(`user password --account ${account} --password-stdin --json`, { stdin: 'mine\n' })
  t.strictSame(given.json(), { user_id: made.user_id, account })
  t.ok(await services.users.verify(account, 'mine'))
  t.match(await run('user password --account bob'), { code: 1, stderr: 'fastify-identity: --account: no user has this account\n' })
})

t.test('user unlock: a closed password is compared again', async (t) => {
  const dir = t.testdir()
  const run = createCli(dir)
  const time = Date.now()
  const services = await openBeside(t, dir, () => time)
  const { user_id } = await services.users.create({ data: { account: 'ann', password: 'p' } })
  for (let made = 0; made < 20; made++) t.equal(await services.users.verify('ann', 'wrong'), null)
  await t.rejects(services.users.verify('ann', 'wrong'), { code: 'ErrLimit', reason: 'paused' })
  // The pause of a second may have ended before the command opens the store.
  t.match((await run('user unlock --account Ann --json')).json(), { user_id, account: 'ann', opened: Array, not_closed: Array, elsewhere_until: String })
  t.ok(await services.users.verify('ann', 'p'))
  t.match(await run('user unlock --account bob'), { code: 1, stderr: 'fastify-identity: --account: no user has this account\n' })
})

t.test('user roles', async (t) => {
  const dir = t.testdir()
  const run = createCli(dir)
  const services = await openBeside(t, dir)
  const { user_id } = await services.users.create({ data: { account: 'ann', password: 'p' } }, { roles: { a: { of: 'team' }, b: true } })
  const { json } = await run('user roles --account ann --add a --add c --remove b --json')
  t.strictSame(json(), { user_id, account: 'ann', roles: { a: { of: 'team' }, c: true } })
  t.strictSame((await services.users.require(user_id)).roles, { a: { of: 'team' }, c: true })
  t.match((await run('user roles --account ann --remove c')).stdout, /^roles {4}a$/m)
  for (const [line, message] of [
    ['user roles --account ann', '--add: is required, or --remove' + SEE + 'user roles'],
    ['user roles --account ann --add x --remove x', '--add: names a role that --remove also names' + SEE + 'user roles'],
    ['user roles --account ann --add __proto__', 'roles: must not have the key __proto__'],
    ['user roles --account ann --remove x', '--remove: the user does not have this role']
  ] as const) t.match(await run(line), { code: message.includes(SEE) ? 2 : 1, stdout: '', stderr: `fastify-identity: ${message}\n` })
})

t.test('client create and list', async (t) => {
  const dir = t.testdir()
  const run = createCli(dir)
  const services = await openBeside(t, dir)
  t.equal((await run('client list')).stdout, 'none\n')
  const ann = (await services.users.create({ data: { account: 'ann', password: 'p' } })).user_id
  await services.users.create({ data: { account: 'bob', password: 'p' } })

  const open = (await run('client create --owner ann --name web --redirect-uri https://b/ --redirect-uri https://a/ --scope x --scope a --json')).json()
  t.strictSame(Object.keys(open), ['clientId'])
  const held = (await run('client create --owner bob --name api --credentials --json')).json()
  t.match(held.clientSecret, /^\w{16}$/)
  t.match(await services.clients.require(open.clientId ?? '', OPERATOR), { userId: ann, redirectUris: ['https://a/', 'https://b/'], scopes: ['a', 'x'] })

  const { stdout } = await run('client list')
  t.match(stdout.split('\n'), [
    /^CLIENT_ID {27}NAME {2}OWNER {31}KIND {10}SCOPES {2}CREATED$/,
    new RegExp(`^${held.clientId}  api   \\w{34}  confidential          20`),
    new RegExp(`^${open.clientId}  web   ${ann}  public        a,x     20`)
  ])
  t.notOk(stdout.includes(held.clientSecret ?? '-'))
  t.match((await run('client list --json --owner bob')).json(), { data: [{ clientId: held.clientId, clientSecret: held.clientSecret }] })
  t.match((await run('client list --json --limit 1')).json(), { data: [{ name: 'api' }] })

  for (const [line, message] of [
    ['client create --owner nobody --name x', '--owner: no user has this account'],
    ['client list --owner nobody', '--owner: no user has this account'],
    ['client create --owner ann --name x --redirect-uri https://a/ --redirect-uri nope', '--redirect-uri[1]: must be an absolute URI'],
    ['client create --owner ann --name x --scope "', '--scope[0]: must be a scope token: printable ASCII without space, quote and backslash'],
    [`client create --owner ann --name ${'x'.repeat(257)}`, '--name: must NOT have more than 256 characters' + SEE + 'client create'],
    [`client create --owner ann --name x --scope ${'x'.repeat(129)}`, '--scope[0]: must NOT have more than 128 characters' + SEE + 'client create']
  ] as const) t.match(await run(line), { code: message.includes(SEE) ? 2 : 1, stdout: '', stderr: `fastify-identity: ${message}\n` })
})

t.test('the JSON of a command has the names that the API has', async (t) => {
  const run = createCli(t.testdir(), { IDENTITY_ISSUER: 'https://id.example' })
  const created = (await run('user create --account ann --json')).json()
  const { clientId } = (await run('client create --owner ann --name a --credentials --json')).json()
  const { id } = (await run(`client secret add --client ${clientId} --name nightly --json`)).json()
  const { webhookId } = (await run('webhook create --name w --url https://hooks.example.com/ --json')).json()
  t.ok(created.user_id && clientId && id && webhookId)
  for (const [line, ...schemas] of [
    ['bootstrap', UserSchema, ClientSchema, Type.Object({ password: Type.String(), access_token: Type.String() })],
    ['user create --account bob', UserSchema, Type.Object({ password: Type.String() })],
    ['user show --account ann', UserItemSchema, Type.Object({ clients: Type.Integer() })],
    ['client create --owner ann --name b --credentials', ClientSchema],
    [`client patch --client ${clientId} --regen-secret`, ClientSchema],
    [`client secret add --client ${clientId} --name weekly`, SecretCreatedSchema.properties.data, ClientSchema],
    [`client secret remove --client ${clientId} --secret ${id}`, SecretCreatedSchema.properties.data, ClientSchema],
    ['resource create --id urn:example:a --name A', ResourceCreatedSchema.properties.data],
    ['resource remove --id urn:example:a', ResourceCreatedSchema.properties.data],
    ['webhook create --name v --url https://hooks.example.com/', WebhookCreatedSchema.properties.data],
    [`webhook delete --webhook ${webhookId}`, WebhookCreatedSchema.properties.data],
    [`client delete --client ${clientId}`, ClientSchema]
  ] as const) {
    const { code, stderr, json } = await run(`${line} --json`)
    t.equal(code, 0, `${line}: ${stderr}`)
    const names = schemas.flatMap(({ properties }) => Object.keys(properties))
    t.strictSame(Object.keys(json()).filter((name) => !names.includes(name)), [], line)
  }
})

t.test('help of the beginning of several commands lists them', async (t) => {
  const run = createCli(t.testdir())
  const list = async (line: string) => {
    const { code, stdout } = await run(line)
    t.equal(code, 0, line)
    return [...stdout.matchAll(/^ {2}((?:[a-z][\w-]* )+) /gm)].map(([, name = '']) => name.trim())
  }
  const secrets = ['client secret add', 'client secret list', 'client secret remove']
  for (const line of ['help client secret', 'client secret --help', 'client secret -h']) t.strictSame(await list(line), secrets, line)
  t.strictSame(await list('help client key'), ['client key add', 'client key list', 'client key remove'])
  const clients = await list('help client')
  t.ok(secrets.every((name) => clients.includes(name)) && clients.includes('client create'))
  t.match((await run('help backup')).stdout, /^ {2}backup record +\S/m, 'a command shows those that begin with its name')
  t.match((await run('help client secret add')).stdout, /^Add a named secret/)
  t.match(await run('help client secre'), { code: 2, stderr: /not a command/ })
})

t.test('keys rotate', async (t) => {
  const run = createCli(t.testdir())
  const [first, second] = [(await run('keys rotate --json')).json(), (await run('keys rotate --json')).json()]
  t.strictSame(Object.keys(first), ['kid', 'signs_from'])
  t.not(first.kid, second.kid)
  t.match((await run('keys rotate')).stdout, /^kid {9}\S+\nsigns_from {2}20\S+Z\n$/)
})

t.test('client create and patch: what only the operator decides', async (t) => {
  const dir = t.testdir()
  const run = createCli(dir)
  const services = await openBeside(t, dir)
  await services.users.create({ data: { account: 'ann', password: 'p' } })
  const made = (await run('client create --owner ann --name web --redirect-uri https://a/ --credentials --grant code --pkce optional --first-party --role clerk --id-token-claims on --backchannel-logout-uri https://a/logout --json')).json()
  const clientId = String(made.clientId)
  const read = () => services.clients.require(clientId, OPERATOR)
  t.match(await read(), { grants: ['code'], pkce: 'optional', first_party: true, roles: { clerk: true }, id_token_claims: true, backchannelLogoutUri: 'https://a/logout' })
  t.equal((await run(`client patch --client ${clientId} --pkce required --third-party --id-token-claims off`)).code, 0)
  t.match(await read(), { grants: ['code'], pkce: undefined, first_party: undefined, roles: { clerk: true }, id_token_claims: undefined, backchannelLogoutUri: 'https://a/logout' })
  t.equal((await run(['client', 'patch', '--client', clientId, '--backchannel-logout-uri', ''])).code, 0)
  t.equal((await read()).backchannelLogoutUri, undefined)
  const claim = async (...values: string[]) => await run(['client', 'patch', clientId, ...values.flatMap((value) => ['--claim', value])])
  t.equal((await claim('tenant=attributes.tenant:userinfo,id_token', 'plan=attributes.plan.name:jwt')).code, 0)
  t.strictSame((await read()).claims, { plan: { from: 'attributes.plan.name', in: ['jwt'] }, tenant: { from: 'attributes.tenant', in: ['id_token', 'userinfo'] } })
  for (const [value, code, stderr] of [
    ['roles=attributes.roles:jwt', 1, /--claim\.roles: is a name that standards or this service use/],
    ['tenant=info.tenant:jwt', 1, /--claim\.tenant\.from: must be attributes\./],
    ['tenant=attributes.tenant:tokeninfo', 2, /--claim: /],
    ['tenant', 2, /--claim: must be NAME=FROM:PLACES/]
  ] as const) t.match(await claim(value), { code, stderr }, value)
  t.match((await read()).claims, { plan: {}, tenant: {} }, 'a refused claim changes nothing')
  t.equal((await claim('')).code, 0)
  t.equal((await read()).claims, undefined)
  t.match(await run(`client patch --client ${clientId} --backchannel-logout-uri https://10.0.0.1/`), { code: 1, stderr: /--backchannel-logout-uri: must be a public address/ })
  t.match(await run(`client patch --client ${clientId} --id-token-claims maybe`), { code: 2, stderr: /^fastify-identity: --id-token-claims: must be on or off$/m })

  t.match(await run(`client patch --client ${clientId} --profile fapi2`), { code: 1, stderr: /profile: fapi2 requires tokenAuth private_key_jwt/ })
  const { publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  await services.clients.addKeys(clientId, { keys: [publicKey.export({ format: 'jwk' })] }, OPERATOR)
  t.equal((await run(`client patch --client ${clientId} --token-auth private_key_jwt --profile fapi2 --id-token-alg ES256`)).code, 0)
  t.match(await read(), { tokenAuth: 'private_key_jwt', profile: 'fapi2', idTokenAlg: 'ES256' })
  t.equal((await run(`client patch --client ${clientId} --profile none --id-token-alg RS256`)).code, 0)
  t.match(await read(), { tokenAuth: 'private_key_jwt', profile: undefined, idTokenAlg: undefined })
  t.match(await run(`client patch --client ${clientId} --id-token-alg HS256`), { code: 2, stderr: /--id-token-alg: must be / })
})
