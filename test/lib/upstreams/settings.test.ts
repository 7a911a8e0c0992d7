import { generateKeyPairSync } from 'node:crypto'
import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { createOptionsReader } from '../../../lib/options.ts'
import { checkUpstreams, parseUpstreams } from '../../../lib/upstreams/settings.ts'
import { OptionsSchema } from '../../../schemas/options.ts'
import type { GivenUpstream } from '../../../schemas/upstream.ts'

const read = createOptionsReader(OptionsSchema)
const check = (upstreams: GivenUpstream[], signUp = false) => checkUpstreams(read({ upstreams }).upstreams, { signUp })
const pem = (curve: string) => generateKeyPairSync('ec', { namedCurve: curve }).privateKey.export({ format: 'pem', type: 'pkcs8' })

t.test('what is wrong with an upstream is said, with its name and the field', async (t) => {
  const directory = t.testdir({ 'right.p8': pem('P-256'), 'other.p8': pem('P-384'), empty: '\n', 'no.p8': 'no key' })
  const file = (name: string) => join(directory, name)
  const google: GivenUpstream = { id: 'google', kind: 'google', clientId: 'c', clientSecret: 's' }
  const corp: GivenUpstream = { id: 'corp', kind: 'oidc', issuer: 'https://corp.example', clientId: 'c', clientSecret: 's' }
  const apple: GivenUpstream = { id: 'apple', kind: 'apple', clientId: 'c', keyFile: file('right.p8'), keyId: 'k', teamId: 't' }
  const microsoft: GivenUpstream = { id: 'ms', kind: 'microsoft', clientId: 'c', clientSecret: 's', tenants: ['all'] }
  const github: GivenUpstream = { id: 'github', kind: 'github', clientId: 'c', clientSecret: 's' }
  const { clientSecret: _secret, ...bare } = corp
  for (const [upstream, problem] of [
    [{ ...corp, issuer: undefined }, 'issuer: is required'],
    [bare, 'clientSecretFile: is required, or keyFile'],
    [{ ...corp, clientSecretFile: file('right.p8') }, 'clientSecretFile: there must be one secret or one key'],
    [{ ...corp, keyId: 'k' }, 'keyId: needs keyFile'],
    [{ ...bare, clientSecretFile: '/none' }, 'clientSecretFile: the file /none cannot be read (ENOENT)'],
    [{ ...bare, clientSecretFile: file('empty') }, `clientSecretFile: the file ${file('empty')} is empty`],
    [{ ...bare, keyFile: file('no.p8') }, `keyFile: the file ${file('no.p8')} has no private key in PEM, or one of another kind`],
    [{ ...apple, keyFile: file('other.p8') }, `keyFile: the file ${file('other.p8')} has no private key in PEM, or one of another kind`],
    [{ ...apple, keyId: undefined }, 'keyFile: is required with keyId and teamId'],
    [{ ...apple, clientSecret: 's' }, 'clientSecret: apple has none'],
    [{ ...google, keyFile: file('right.p8') }, 'keyFile: google has none'],
    [{ ...google, tenants: ['all'] }, 'tenants: google has none'],
    [{ ...google, emails: 'verified' as const }, 'emails: google has none'],
    [{ ...google, claims: { name: 'x' } }, 'claims: google has none'],
    [{ ...microsoft, tenants: undefined }, 'tenants: is required: the ids of tenants, or all'],
    [{ ...microsoft, tenants: ['all', '0a8a1c02-3c60-4be0-8c31-9d2b0a0d6f01'] }, 'tenants: all stands alone'],
    [{ ...google, factors: { amr: ['mfa'] } }, 'factors: google does not say whether two-factor authentication was used'],
    [{ ...github, factors: { acr: ['x'] } }, 'factors: github does not say whether two-factor authentication was used'],
    [{ ...apple, factors: { amr: ['mfa'] } }, 'factors: apple does not say whether two-factor authentication was used'],
    [{ ...google, create: true }, 'create: needs the option signUp, because nobody may make an account by themselves'],
    [{ ...google, only: true }, 'only: needs domains'],
    [{ ...github, only: true, domains: ['example.com'] }, 'only: needs an authority on addresses, and github has only seen them'],
    [{ ...github, link: 'verified' as const }, 'link: verified needs an authority on addresses, and github has only seen them'],
    [{ ...apple, only: true, domains: ['privaterelay.appleid.com'] }, 'only: needs an authority on addresses, and apple has only seen them'],
    [{ ...apple, link: 'verified' as const, domains: ['example.com'] }, 'link: verified needs an authority on addresses, and apple has only seen them'],
    [{ ...corp, only: true }, "only: needs emails: 'verified', because no address is proved otherwise"],
    [{ ...google, id: 'mail' }, 'id: must be none of mail, operator, import, which name other proofs of an address'],
    [{ ...google, rejoin: { until: new Date(Date.now() + 10_000).toISOString() } }, "rejoin: needs only or link: 'verified', because no identity joins by itself otherwise"],
    [{ ...google, link: 'verified' as const, rejoin: { until: new Date(Date.now() + 31 * 86_400_000).toISOString() } }, 'rejoin.until: must be at most 30 days from now'],
    [{ ...google, link: 'verified' as const, rejoin: { until: '2026-99-99T00:00:00Z' } }, 'rejoin.until: is no time'],
    [{ ...corp, domains: ['example.com'] }, "domains: needs emails: 'verified', because no address is proved otherwise"],
    [{ ...corp, link: 'verified' as const }, "link: verified needs emails: 'verified', because no address is proved otherwise"]
  ] as [GivenUpstream, string][]) {
    const given = Object.fromEntries(Object.entries(upstream).filter(([, value]) => value !== undefined)) as GivenUpstream
    t.throws(() => check([given]), { message: `option upstreams: ${upstream.id}: ${problem}` }, problem)
  }
  t.throws(() => check([google, google]), { message: 'option upstreams: google: id: is used twice' })
  const only = { ...google, only: true, domains: ['example.com'] }
  t.throws(() => check([only, { ...only, id: 'other' }]), { message: 'option upstreams: other: only: the upstream google has the domain example.com already' })
  for (const [field, value] of [['id', 'Google'], ['kind', 'yahoo'], ['issuer', 'ftp://x'], ['domains', ['Example.com']], ['link', 'always'], ['tenants', ['common']], ['issuer', 'https://u:p@x'], ['create', { roles: {} }]] as const) {
    t.throws(() => check([{ ...google, [field]: value }]), { message: new RegExp(`^option upstreams\\.0\\.${field}`) }, field)
  }
  t.match(check([{ ...google, link: 'verified', rejoin: { until: '2020-01-01T00:00:00Z' } }]), ['option upstreams: google: rejoin: ended at 2020-01-01T00:00:00Z, remove it'])
  chmodSync(file('right.p8'), 0o644)
  t.strictSame(check([{ ...github, create: true, domains: ['example.com'] }], true), [], 'domains of a provider that has only seen them narrow')
  t.match(check([{ ...google, create: true }, apple], true), [/^option upstreams: apple: the key file .* is open to others/])
})

t.test('the file of the environment has its secrets elsewhere', async (t) => {
  const secret = join(t.testdir({ secret: 'hunter2\n' }), 'secret')
  const parse = (value: unknown) => parseUpstreams(typeof value === 'string' ? value : JSON.stringify(value), { signUp: false })
  const google = { id: 'google', kind: 'google', clientId: 'c' }
  t.strictSame(parse([{ ...google, clientSecretFile: secret }]), [{ ...google, clientSecretFile: secret, create: false, link: 'confirm', sync: 'first' }])
  for (const [value, message] of [
    ['{', 'must be JSON'],
    [{}, 'must be an array of upstreams'],
    [[{ ...google, clientSecret: 'hunter2' }], 'google: clientSecret: must be in a file of its own, see clientSecretFile'],
    [[{ ...google, clientSecretFile: '/none' }], 'google: clientSecretFile: the file /none cannot be read (ENOENT)'],
    [[{ ...google, secret: 'hunter2' }], '0.secret: is not an option']
  ] as const) {
    t.throws(() => parse(value), { message: new RegExp(`^${message.replaceAll(/[()/]/g, '\\$&')}`) }, message)
    try { parse(value) } catch (error) { t.notMatch((error as Error).message, /hunter2/) }
  }
  writeFileSync(secret, 'x')
})
