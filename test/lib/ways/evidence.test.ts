import t from 'tap'
import { type Evidence, type Proof, toStrength } from '../../../lib/proofs.ts'
import type { Actor } from '../../../lib/roles.ts'
import type { Way } from '../../../lib/way.ts'
import { FRESH, isEnough } from '../../../lib/ways/evidence.ts'
import { DEFAULT_POLICY, type Holder } from '../../../lib/ways/words.ts'
import { createSilentRecorder } from '../../helpers/events.ts'
import { openRules } from '../../helpers/services.ts'
import { openTestWays } from '../../helpers/user-changes.ts'

const NOW = Date.parse('2126-11-23T12:00:00.000Z')
const ago = (seconds: number): string => new Date(NOW - seconds * 1000).toISOString()

const POLICY = { ...DEFAULT_POLICY, allowsUpstream: () => true }
const WAYS: Record<string, Way> = {
  totp: { kind: 'totp', at: ago(9999) }, key: { kind: 'passkey', uv: true, at: ago(9999) }, corp: { kind: 'upstream', upstream: 'corp', at: ago(9999) }
}
const own = (...ids: string[]): Holder => ({ account: 'ann', roles: {}, ...(ids.includes('password') && { password: 'hash' }), ways: Object.fromEntries(ids.filter((id) => id !== 'password').map((id) => [id, WAYS[id]!])) })

const password = (at = NOW): Proof => ({ way: 'password', kind: 'password', at: new Date(at).toISOString() })
const totp: Proof = { way: 'totp', kind: 'totp', at: ago(0) }
const upstream: Proof = { way: 'corp', kind: 'upstream', at: ago(0) }
const touch: Proof = { way: 'key', kind: 'passkey', at: ago(0) }
const verified: Proof = { ...touch, uv: true }

const HOLDERS = { password: own('password'), none: own(), corp: own('corp'), factor: own('password', 'totp'), passkey: own('password', 'key'), all: own('password', 'totp', 'key', 'corp') }
type Name = keyof typeof HOLDERS
const EVERYBODY = Object.keys(HOLDERS) as Name[]
const WITHOUT_FACTOR: Name[] = ['password', 'none', 'corp']

const brought = (more: Partial<Evidence>): Evidence => ({ isOperator: false, proofs: [], at: NOW, ...more })
const signedIn = (seconds: number, ...proofs: Proof[]) => brought({ auth: toStrength(proofs.map((proof) => ({ ...proof, at: ago(seconds) }))) })

const TABLE: [name: string, evidence: Evidence, enough: Name[]][] = [
  ['an operator', brought({ isOperator: true }), EVERYBODY],
  ['nothing', brought({}), []],
  ['a fresh sign-in with a password', signedIn(FRESH, password()), WITHOUT_FACTOR],
  ['one that is a second too old', signedIn(FRESH + 1, password()), []],
  ['a fresh one with both kinds', signedIn(0, password(), totp), EVERYBODY],
  ['a fresh one with a passkey', signedIn(0, verified), EVERYBODY],
  ['an old one with a passkey', signedIn(FRESH + 1, verified), []],
  ['the password', brought({ proofs: [password()] }), ['password']],
  ['a password of long ago', brought({ proofs: [password(NOW - (FRESH + 1) * 1000)] }), []],
  ['the password and a code', brought({ proofs: [password(), totp] }), ['password', 'factor', 'all']],
  ['the password and a touch of the passkey', brought({ proofs: [password(), touch] }), ['password', 'passkey', 'all']],
  ['a passkey that verified the user', brought({ proofs: [verified] }), ['passkey', 'all']],
  ['a touch of the passkey alone', brought({ proofs: [touch] }), []],
  ['a code alone', brought({ proofs: [totp] }), []],
  ['an identity', brought({ proofs: [upstream] }), ['corp']],
  ['an identity and a code', brought({ proofs: [upstream, totp] }), ['corp', 'all']],
  ['an old sign-in with both, and the password now', brought({ auth: toStrength([{ ...password(), at: ago(9999) }, { ...totp, at: ago(9999) }]), proofs: [password()] }), ['password']]
]

t.test('what is enough for whom', async (t) => {
  for (const [name, evidence, enough] of TABLE) {
    t.strictSame(EVERYBODY.filter((holder) => isEnough(HOLDERS[holder], evidence, POLICY)), enough, name)
  }
})

t.test('where the policy demands a factor of somebody without one, a sign-in must have both kinds, and the password still confirms', async (t) => {
  const policy = { ...POLICY, factors: 'required' as const }
  t.equal(isEnough(HOLDERS.password, signedIn(0, password()), policy), false)
  t.equal(isEnough(HOLDERS.password, signedIn(0, password(), totp), policy), true)
  t.equal(isEnough(HOLDERS.password, brought({ proofs: [password()] }), policy), true)
})

t.test('a factor that is added while the new password is hashed is asked for', async (t) => {
  const during: { run?: (() => Promise<unknown>) | undefined } = {}
  const { users, records, store, now, tokens } = await openRules(t, {
    passwords: {
      async hash (password) {
        await during.run?.()
        return `strong ${password}`
      }
    }
  })
  const ways = openTestWays({ store, now, recorder: createSilentRecorder(store), tokens, onError: (error) => { throw error } })
  const { user_id } = await users.create({ data: { account: 'ann', password: 'old' } })
  const app: Actor = { user_id, isAdmin: false, isUnrestricted: false }
  const set = async (password: string, current_password: string) => await users.patchOwn(user_id, { data: { password, current_password } }, app)
  during.run = async () => await records.users.update(user_id, { set: { ways: { gone: WAYS.totp! } }, increment: { revision: 1 } })
  t.match(await set('second', 'old'), { epoch: 1 }, 'a factor whose material is missing counts as none')
  during.run = async () => await ways.add({ user_id, epoch: 1 }, { kind: 'totp', material: { step: 0 } })
  await t.rejects(set('third', 'second'), { code: 'ErrUnknown', headers: { 'www-authenticate': /insufficient_user_authentication.*acr_values="mfa"/ } })
  t.match(await records.users.get(user_id), { password: 'strong second', epoch: 1 })
})
