import t from 'tap'
import type { Roles } from '../../../lib/roles.ts'
import { type Way, type Ways, listKeys, toWayKey } from '../../../lib/way.ts'
import {
  DEFAULT_POLICY, type Holder, type WayPolicy, beginsSignIn, canReach, endsSessions, findDemanded, hasFactor, isFactor, isForbidden, isStanding, listWaysIn, mayRemove,
  withoutWays
} from '../../../lib/ways/words.ts'

const at = '2026-11-23T00:00:00.000Z'
const WAYS: Record<string, Way> = {
  key: { kind: 'passkey', key: 'k', at, uv: true, rp: 'id.example' },
  plain: { kind: 'passkey', key: 'p', at, rp: 'id.example' },
  foreign: { kind: 'passkey', key: 'f', at, uv: true, rp: 'other.example' },
  totp: { kind: 'totp', at },
  codes: { kind: 'recovery', at },
  corp: { kind: 'upstream', key: 'c', at, upstream: 'corp' },
  gone: { kind: 'upstream', key: 'g', at, upstream: 'gone' }
}

/** A user with a password if `password` is among the names, and with these ways. */
function hold (names: string, roles: Roles = {}): Holder {
  const list = names.split(' ')
  const ways: Ways = Object.fromEntries(list.flatMap((name) => WAYS[name] === undefined ? [] : [[name, WAYS[name]]]))
  return { account: 'ann', roles, ...(list.includes('password') && { password: 'hash' }), ...(Object.keys(ways).length > 0 && { ways }) }
}

const POLICY: WayPolicy = { ...DEFAULT_POLICY, relyingParty: 'id.example', allowsUpstream: (upstream, client) => upstream === 'corp' && client !== 'narrow' }
const policy = (change: Partial<WayPolicy> = {}): WayPolicy => ({ ...POLICY, ...change })
const REQUIRED = policy({ factors: 'required' })

t.test('what begins a sign-in, what is only second, and what is a factor', async (t) => {
  for (const [name, begins, factor] of [
    ['key', true, true], ['plain', false, true], ['totp', false, true], ['codes', false, false], ['corp', true, false]
  ] as const) {
    t.equal(beginsSignIn(WAYS[name]!), begins, `${name} begins`)
    t.equal(isFactor(WAYS[name]!), factor, `${name} is a factor`)
  }
  t.equal(beginsSignIn({ kind: 'password' }), true)
  t.equal(isFactor({ kind: 'password' }), false)
})

t.test('what forbids a way: passkeys that are off, another relying party, an upstream that is removed or not for the client', async (t) => {
  const forbidden = (given: WayPolicy, client?: string) => Object.keys(WAYS).filter((name) => isForbidden(WAYS[name]!, given, client)).sort()
  t.strictSame(forbidden(POLICY), ['foreign', 'gone'])
  t.strictSame(forbidden(policy({ passkeys: false })), ['foreign', 'gone', 'key', 'plain'])
  t.strictSame(forbidden(POLICY, 'narrow'), ['corp', 'foreign', 'gone'])
  t.strictSame(forbidden(policy({ factors: 'off' })), ['foreign', 'gone'], 'that factors are off forbids none that exists')
  t.strictSame(forbidden(DEFAULT_POLICY), ['corp', 'gone'], 'without upstreams; without a relying party each counts')
})

t.test('ways in, factors, and what is demanded', async (t) => {
  const table: [names: string, waysIn: string[], factor: boolean, demanded: string][] = [
    ['', [], false, '1'],
    ['password', ['password'], false, '1'],
    ['password totp', ['password'], true, 'mfa'],
    ['password codes', ['password'], false, '1'],
    ['password plain', ['password'], true, 'mfa'],
    ['key', ['key'], true, 'mfa'],
    ['foreign', [], false, '1'],
    ['password foreign', ['password'], false, '1'],
    ['corp gone', ['corp'], false, '1'],
    ['password key corp', ['password', 'key', 'corp'], true, 'mfa']
  ]
  for (const [names, waysIn, factor, demanded] of table) {
    const user = hold(names)
    t.strictSame(listWaysIn(user, POLICY), waysIn, names)
    t.equal(hasFactor(user, POLICY), factor, names)
    t.equal(findDemanded(user, POLICY), demanded, names)
    t.equal(findDemanded(user, REQUIRED), 'mfa', names)
  }
  t.equal(findDemanded(hold('password key'), policy({ passkeys: false })), '1', 'a passkey that is off counts as none')
  t.equal(findDemanded(hold('password totp'), policy({ factors: 'off' })), 'mfa', 'who has a factor is asked for it')
  const ofRoles = policy({ factors: { roles: ['admin', 'ops'] } })
  t.equal(findDemanded(hold('password', { ops: true }), ofRoles), 'mfa')
  t.equal(findDemanded(hold('password', { editor: true }), ofRoles), '1')
  t.strictSame(listWaysIn({ ...hold('corp'), password: '' }, POLICY), ['corp'], "'' is no password")
})

t.test('what a person can reach', async (t) => {
  const table: [names: string, reached: string][] = [
    ['', ''], ['password', '1'], ['totp codes', ''], ['password codes', '1'], ['password totp', '1 mfa'], ['password plain', '1 mfa phr'],
    ['plain', ''], ['key', '1 mfa phr'], ['corp', '1'], ['corp totp', '1 mfa'], ['gone totp', ''], ['foreign totp', '']
  ]
  for (const [names, reached] of table) {
    t.equal((['1', 'mfa', 'phr'] as const).filter((acr) => canReach(hold(names), acr, POLICY)).join(' '), reached, names)
  }
})

t.test('the last way in may not be removed, nor a factor without which nothing reaches what is demanded', async (t) => {
  const table: [names: string, removed: string, may: boolean, given?: WayPolicy][] = [
    ['password', 'password', false],
    ['corp', 'corp', false],
    ['key', 'key', false],
    ['password corp', 'corp', true],
    ['password corp', 'password', true],
    ['key totp', 'key', false],
    ['password gone', 'password', false],
    ['password foreign', 'password', false],
    ['password totp', 'totp', true],
    ['password totp', 'password', false],
    ['password totp', 'totp', false, REQUIRED],
    ['password totp plain', 'totp', true, REQUIRED],
    ['password key', 'key', false, REQUIRED],
    ['password key', 'password', true, REQUIRED],
    ['corp key', 'corp', true, REQUIRED],
    ['password totp codes', 'codes', true],
    ['password totp codes', 'codes', true, REQUIRED],
    ['gone', 'gone', true],
    ['foreign', 'foreign', true, REQUIRED],
    ['key', 'key', true, policy({ passkeys: false })],
    ['password', 'nothing', true]
  ]
  for (const [names, removed, may, given = POLICY] of table) t.equal(mayRemove(hold(names), removed, given), may, `${names} without ${removed}`)
})

t.test('recovery codes go with the last factor', async (t) => {
  const left = (names: string, ...ids: string[]) => Object.keys(withoutWays(hold(names), ids).ways ?? {}).join(' ')
  t.equal(left('password totp plain codes', 'totp'), 'plain codes')
  t.equal(left('password totp codes', 'totp'), '')
  t.equal(left('password corp totp codes', 'totp'), 'corp')
  t.equal(left('password totp codes', 'codes'), 'totp')
  t.notOk('password' in withoutWays(hold('password corp'), ['password']))
  t.equal(withoutWays(hold('password corp'), ['corp']).password, 'hash')
})

t.test('a role that demands a factor ends the sessions of whoever has none', async (t) => {
  const given = policy({ factors: { roles: ['admin'] } })
  t.equal(endsSessions(hold('password'), { admin: true }, given), true)
  t.equal(endsSessions(hold('password'), { editor: true }, given), false)
  t.equal(endsSessions(hold('password totp'), { admin: true }, given), false)
  t.equal(endsSessions(hold('password foreign'), { admin: true }, given), true, 'a passkey that counts as none')
  t.equal(endsSessions(hold('password', { admin: true }), { admin: true, editor: true }, given), false, 'who had it already')
  t.equal(endsSessions(hold('password'), { admin: true }, POLICY), false)
  t.equal(endsSessions(hold('password'), { admin: true }, REQUIRED), false, 'it was demanded before')
})

t.test('a proof stands while its way exists and is not forbidden', async (t) => {
  const user = hold('password key totp codes corp foreign')
  const stands = (kind: 'password' | Way['kind'], way: string, client?: string, of: Holder = user) => isStanding({ way, kind, at }, of, POLICY, client)
  t.equal(stands('password', 'password'), true)
  t.equal(stands('password', 'password', undefined, hold('corp')), false, 'a password that was removed')
  t.equal(stands('totp', 'totp'), true)
  t.equal(stands('totp', 'other'), false, 'removed')
  t.equal(stands('totp', 'corp'), false, 'another kind')
  t.equal(stands('totp', 'toString'), false)
  t.equal(stands('passkey', 'key'), true)
  t.equal(stands('passkey', 'foreign'), false, 'forbidden')
  t.equal(stands('upstream', 'corp'), true)
  t.equal(stands('upstream', 'corp', 'narrow'), false, 'forbidden for this client')
  t.equal(stands('recovery', 'former codes'), true, 'the codes were made anew')
  t.equal(stands('recovery', 'codes', undefined, hold('password totp')), false)
})

t.test('the key of a way says of which kind it is, and of which issuer', async (t) => {
  const keys = [toWayKey('passkey', 'a'), toWayKey('passkey', 'b'), toWayKey('upstream', 'a', 'b'), toWayKey('upstream', 'ab', ''), toWayKey('upstream', 'a', 'c')]
  t.equal(new Set(keys).size, keys.length)
  for (const key of keys) t.match(key, /^[\w-]{43}$/)
  t.strictSame(listKeys({ one: WAYS.key!, two: WAYS.totp!, three: WAYS.corp!, four: WAYS.key! }), ['k', 'c'])
})
