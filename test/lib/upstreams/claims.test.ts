import t from 'tap'
import { isOfTenant, readClaims } from '../../../lib/upstreams/claims.ts'
import type { Claims } from '../../../lib/upstreams/provider.ts'
import type { Upstream } from '../../../schemas/upstream.ts'

const base = { clientId: 'c', clientSecret: 's', create: false, link: 'confirm', sync: 'first' } as const
const google: Upstream = { ...base, id: 'google', kind: 'google' }
const github: Upstream = { ...base, id: 'github', kind: 'github' }
const apple: Upstream = { ...base, id: 'apple', kind: 'apple' }
const corp: Upstream = { ...base, id: 'corp', kind: 'oidc', issuer: 'https://corp.example', emails: 'verified' }
const [HOME, OTHER] = ['0a8a1c02-3c60-4be0-8c31-9d2b0a0d6f01', 'ffffffff-3c60-4be0-8c31-9d2b0a0d6f02']
const tenant: Upstream = { ...base, id: 'ms', kind: 'microsoft', tenants: [HOME] }
const tenants: Upstream = { ...tenant, tenants: ['all'] }

const read = (upstream: Upstream, claims: Claims) => readClaims(upstream, { iss: 'https://i.example', sub: '1', oid: 'o', tid: HOME, ...claims })

// Shapes of ID tokens, written from the documentation of each provider.
t.test('who is an authority on an address', async (t) => {
  const mail = 'ann@example.com'
  for (const [name, upstream, claims, expected] of [
    ['Google runs the mail of the organization', google, { email: mail, email_verified: true, hd: 'example.com' }, mail],
    ['Google hands the address out', google, { email: 'Ann@Gmail.com', email_verified: true }, 'ann@gmail.com'],
    ['Google without hd is not authoritative (Hikyo#598)', google, { email: mail, email_verified: true }, undefined],
    ['an empty hd is none', google, { email: mail, email_verified: true, hd: '' }, undefined],
    ['Google without its word', google, { email: 'ann@gmail.com' }, undefined],
    ['a foreign tenant with the address of the victim (nOAuth)', tenants, { tid: OTHER, email: mail, email_verified: true, preferred_username: mail, upn: mail }, undefined],
    ['a tenant that owns the domain', tenants, { tid: OTHER, email: mail, xms_edov: true }, mail],
    ['the same as a number', tenants, { tid: OTHER, email: mail, xms_edov: 1 }, mail],
    ['a domain that the tenant does not own', tenants, { tid: OTHER, email: mail, xms_edov: false }, undefined],
    ['the text false is no truth', tenants, { tid: OTHER, email: mail, xms_edov: 'false' }, undefined],
    ['the only tenant, with a domain that the operator names', { ...tenant, domains: ['example.com'] }, { email: mail }, mail],
    ['the same with another domain: a guest', { ...tenant, domains: ['example.com'] }, { email: 'ann@guest.example' }, undefined],
    ['several tenants, with such a domain', { ...tenants, domains: ['example.com'] }, { email: mail }, undefined],
    ['GitHub without an address', github, { email: undefined, email_verified: false }, undefined],
    ['GitHub, null', github, { email: null, email_verified: true }, undefined],
    ['GitHub, an address without a mailbox', github, { email: '1+ann@users.noreply.github.com', email_verified: true }, undefined],
    ['Apple of the addresses by which it forwards mail, with its booleans as texts', apple, { email: 'x7@privaterelay.appleid.com', email_verified: 'true' }, 'x7@privaterelay.appleid.com'],
    ['the same without its word', apple, { email: 'x7@privaterelay.appleid.com', email_verified: false }, undefined],
    ['Apple, false as text', apple, { email: mail, email_verified: 'false' }, undefined],
    ['a server that the operator trusts', corp, { email: mail, email_verified: true }, mail],
    ['the same with a text', corp, { email: mail, email_verified: 'true' }, undefined],
    ['the same without its word', corp, { email: mail }, undefined],
    ['a server that the operator does not trust', { ...corp, emails: undefined }, { email: mail, email_verified: true }, undefined],
    ['no address at all', corp, { email: 'ann', email_verified: true }, undefined],
    ['several addresses', corp, { email: [mail], email_verified: true }, undefined]
  ] as [string, Upstream, Claims, string | undefined][]) {
    const found = read(upstream, claims)
    t.equal(found?.address, expected, name)
    t.equal(found?.seen, undefined, name)
  }
})

t.test('who has only seen an address', async (t) => {
  const mail = 'ann@example.com'
  for (const [name, upstream, claims] of [
    ['GitHub, primary and verified', github, { email: 'Ann@Example.com', email_verified: true }],
    ['GitHub with a domain that the operator names', { ...github, domains: ['example.com'] }, { email: mail, email_verified: true }],
    ['GitHub, whatever other claims say', { ...github, emails: 'verified' }, { email: mail, email_verified: true, hd: 'example.com', xms_edov: true }],
    ['Apple writes booleans as texts', apple, { email: mail, email_verified: 'true' }],
    ['Apple of its users\' own addresses', apple, { email: mail, email_verified: true }],
    ['Apple, whatever it says of forwarding', apple, { email: mail, email_verified: true, is_private_email: 'true' }]
  ] as [string, Upstream, Claims][]) {
    const found = read(upstream, claims)
    t.equal(found?.address, undefined, name)
    t.equal(found?.seen, mail, name)
  }
  t.equal(read(apple, { email: 'x@evil.privaterelay.appleid.com', email_verified: true })?.address, undefined, 'a subdomain is not the domain')
})

t.test('an identity is issuer and subject', async (t) => {
  const read = readClaims
  t.match(read(corp, { iss: 'https://corp.example', sub: 'a' }), { issuer: 'https://corp.example', subject: 'a' })
  for (const sub of [undefined, '', 7, null, 'x'.repeat(256)]) t.equal(read(corp, { iss: 'https://corp.example', sub }), null)
  // keycloak/keycloak#19117: the subject of a token of Microsoft belongs to an app registration, and a new one locks everybody out.
  const [first, second] = [{ sub: 'of the first app' }, { sub: 'of another app' }].map((claims) => read(tenant, { ...claims, oid: 'object', tid: HOME, iss: 'x' }))
  t.strictSame(first, second)
  t.match(first, { issuer: `https://login.microsoftonline.com/${HOME}/v2.0`, subject: 'object' })
  t.not(read(tenants, { oid: 'object', tid: OTHER })?.issuer, first?.issuer, 'the same object in another tenant is somebody else')
})

// CVE-2026-18215 in Keycloak: one road forgot the tenant.
t.test('only the tenants that are named', async (t) => {
  for (const [upstream, tid, expected] of [
    [tenant, HOME, true], [tenant, OTHER, false], [tenants, OTHER, true], [tenant, undefined, false], [tenants, undefined, false], [tenants, '../common', false], [corp, undefined, true]
  ] as const) t.equal(isOfTenant(upstream, { tid }), expected)
})

t.test('a name may be missing, and never says what a name must not', async (t) => {
  const nameOf = (claims: Claims, upstream = corp) => readClaims(upstream, { iss: 'i', sub: 's', ...claims })?.name
  t.equal(nameOf({ name: ' Ann ' }), 'Ann')
  t.equal(nameOf({ given_name: 'Ann', family_name: 'Lee' }), 'Ann Lee')
  t.equal(nameOf({}), '', "Apple's second sign-in")
  t.equal(nameOf({ name: 'Ann\u202e' }), '')
  t.equal(nameOf({ name: { first: 'Ann' } }), '')
  t.equal(nameOf({ name: 'A', nick: 'B' }, { ...corp, claims: { name: 'nick' } }), 'B')
  t.ok([...nameOf({ name: '😀'.repeat(1000) })!].length <= 1000)
})

t.test('what counts as both kinds is what the operator lists', async (t) => {
  const trusted: Upstream = { ...corp, factors: { acr: ['gold'], amr: ['mfa'] } }
  for (const [upstream, claims, expected] of [
    [trusted, { acr: 'gold' }, true], [trusted, { amr: ['pwd', 'mfa'] }, true], [trusted, { acr: 'silver', amr: ['pwd'] }, false], [trusted, { amr: 'mfa' }, false], [trusted, {}, false],
    [corp, { acr: 'gold', amr: ['mfa'] }, false]
  ] as [Upstream, Claims, boolean][]) t.equal(readClaims(upstream, { iss: 'i', sub: 's', ...claims })?.both, expected)
  t.equal(readClaims(trusted, { iss: 'i', sub: 's', auth_time: 1000 })?.at, 1_000_000)
  t.equal(readClaims(trusted, { iss: 'i', sub: 's', auth_time: '1000' })?.at, undefined)
})
