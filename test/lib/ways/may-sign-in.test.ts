import t from 'tap'
import { type Proof, toStrength } from '../../../lib/proofs.ts'
import type { UserRecord } from '../../../lib/records/user.ts'
import type { Store } from '../../../lib/store/port.ts'
import type { Way } from '../../../lib/way.ts'
import { type Judgement, type SignInClaim, createJudge } from '../../../lib/sign-in/may-sign-in.ts'
import { DEFAULT_POLICY, type WayPolicy } from '../../../lib/ways/words.ts'

const NOW = '2126-11-21T02:51:00.000Z'
const SOON = '2126-11-21T02:51:00.001Z'
const PAST = '2126-11-21T02:50:59.999Z'

const USER: UserRecord = { id: 'ann', account: 'ann', created_at: PAST, modified_at: PAST, roles: {}, password: 'hash', name: '', info: {}, epoch: 2, revision: 0 }
const WAYS = {
  totp: { kind: 'totp', at: PAST }, key: { kind: 'passkey', uv: true, rp: 'id.example', at: PAST }, corp: { kind: 'upstream', upstream: 'corp', at: PAST }, codes: { kind: 'recovery', at: PAST }
} as const satisfies Record<string, Way>
const POLICY: WayPolicy = { ...DEFAULT_POLICY, trustsFactor: (upstream, factor) => upstream === 'corp' && factor === 'amr otp', relyingParty: 'id.example', allowsUpstream: (upstream, client) => upstream === 'corp' && client !== 'closed' }

const has = (...ids: (keyof typeof WAYS)[]): Partial<UserRecord> => ({ ways: Object.fromEntries(ids.map((id) => [id, WAYS[id]])) })
const by = (...proofs: (readonly [way: string, kind: Proof['kind'], more?: Partial<Proof>])[]): Partial<SignInClaim> => (
  { proofs: proofs.map(([way, kind, more]) => ({ way, kind, at: PAST, ...more })) })

const PASSWORD = ['password', 'password'] as const
const TOTP = ['totp', 'totp'] as const
const CODE = ['codes', 'recovery'] as const
const CORP = ['corp', 'upstream'] as const
const KEY = ['key', 'passkey', { uv: true }] as const
const TOUCH = ['key', 'passkey', { uv: false }] as const

type Row = { user?: Partial<UserRecord> | null, claim?: Partial<SignInClaim>, policy?: Partial<WayPolicy>, is: string }

/** Each row differs in one thing from one that is judged otherwise, so that each condition decides some row alone. */
const TABLE: Record<string, Row> = {
  'the password of a person without a factor': { is: 'may 1' },
  'who expires later': { user: { expired_at: SOON }, is: 'may 1' },
  'an epoch of later than the record': { claim: { epoch: 3 }, is: 'may 1' },
  'a person who is gone': { user: null, is: 'ended' },
  'who is disabled': { user: { disabled_at: PAST }, is: 'ended' },
  'who expires now': { user: { expired_at: NOW }, is: 'ended' },
  'whose sessions have ended since the first proof': { claim: { epoch: 1 }, is: 'ended' },
  'without a proof': { claim: { proofs: [] }, is: 'ended' },
  'whose password was removed': { user: { password: '' }, is: 'ended' },
  'whose identity was removed': { claim: by(CORP), is: 'ended' },
  'whose identity is now a passkey': { user: { ways: { corp: WAYS.key } }, claim: by(CORP), is: 'ended' },
  'by an identity': { user: has('corp'), claim: by(CORP), is: 'may 1' },
  'by an identity that is not for this client': { user: has('corp'), claim: { ...by(CORP), client_id: 'closed' }, is: 'ended' },
  'by an identity that is for another client': { user: has('corp'), claim: { ...by(CORP), client_id: 'open' }, is: 'may 1' },
  'by an inherited name': { user: has('corp'), claim: by(['constructor', 'upstream']), is: 'ended' },
  'by a passkey that verified them': { user: has('key'), claim: by(KEY), is: 'may phr' },
  'by a passkey, which are off': { user: has('key'), claim: by(KEY), policy: { passkeys: false }, is: 'ended' },
  'by a passkey of another relying party': { user: has('key'), claim: by(KEY), policy: { relyingParty: 'new.example' }, is: 'ended' },
  'by a passkey that did not verify them': { user: has('key'), claim: by(TOUCH), is: 'below mfa' },
  'by such a passkey and the password': { user: has('key'), claim: by(TOUCH, PASSWORD), is: 'may phr' },
  'by the password, with a factor': { user: has('totp'), is: 'below mfa' },
  'by the password and the factor': { user: has('totp'), claim: by(PASSWORD, TOTP), is: 'may mfa' },
  'by the password and a factor that was removed': { user: has('key'), claim: by(PASSWORD, TOTP), is: 'below mfa' },
  'by the password and a recovery code': { user: has('totp', 'codes'), claim: by(PASSWORD, CODE), is: 'may mfa' },
  'by the password and a code of a set that is gone': { user: has('totp'), claim: by(PASSWORD, CODE), is: 'below mfa' },
  'by the password and a code of a set that was renewed': { user: has('totp', 'codes'), claim: by(PASSWORD, ['former', 'recovery']), is: 'may mfa' },
  'by the factor and a code, and nothing that begins a sign-in': { user: has('totp', 'codes'), claim: by(TOTP, CODE), is: 'below mfa' },
  'by a recovery code alone, with a factor that the configuration forbids': { user: has('key', 'codes'), claim: by(CODE), policy: { passkeys: false }, is: 'below 1' },
  'by an identity, with a factor that the configuration forbids': { user: { ...has('key', 'corp'), password: '' }, claim: by(CORP), policy: { passkeys: false }, is: 'may 1' },
  'where a factor is demanded, of somebody without one': { policy: { factors: 'required' }, is: 'missing' },
  'where a role demands a factor': { user: { roles: { ops: true } }, policy: { factors: { roles: ['ops'] } }, is: 'missing' },
  'where another role demands a factor': { user: { roles: { clerk: true } }, policy: { factors: { roles: ['ops'] } }, is: 'may 1' },
  'where a factor is demanded, of somebody who has one': { user: has('totp'), policy: { factors: 'required' }, is: 'below mfa' },
  'where a factor is demanded, by an identity that proves both kinds': { user: has('corp'), claim: by(['corp', 'upstream', { both: true, factor: 'amr otp' }]), policy: { factors: 'required' }, is: 'may mfa' },
  'by a claim that the configuration trusts no more': { user: has('corp'), claim: by(['corp', 'upstream', { both: true, factor: 'amr sms' }]), policy: { factors: 'required' }, is: 'missing' },
  'by one that an earlier release has not kept': { user: has('corp'), claim: by(['corp', 'upstream', { both: true }]), policy: { factors: 'required' }, is: 'missing' },
  'by such an identity, where nothing is demanded': { user: has('corp'), claim: by(['corp', 'upstream', { both: true, factor: 'amr sms' }]), is: 'may 1' },
  'an app that asks for both kinds, of somebody with a factor': { user: has('totp'), claim: { acr: 'mfa' }, is: 'below mfa' },
  'an app that asks for less than is demanded': { user: has('totp'), claim: { acr: '1' }, is: 'below mfa' },
  'an app that asks for both kinds, of somebody without a factor': { claim: { acr: 'mfa' }, is: 'unmet' },
  'an app that asks for a passkey, of somebody without one': { user: has('totp'), claim: { ...by(PASSWORD, TOTP), acr: 'phr' }, is: 'unmet' },
  'an app that asks for a passkey, of somebody with one': { user: has('totp', 'key'), claim: { ...by(PASSWORD, TOTP), acr: 'phr' }, is: 'below phr' },
  'an app that asks for a passkey, of somebody whose passkey a policy forbids': { user: has('totp', 'key'), claim: { ...by(PASSWORD, TOTP), acr: 'phr' }, policy: { passkeys: false }, is: 'unmet' },
  'a person of one upstream, by it': { user: has('corp'), claim: by(CORP), policy: { findOnly: () => 'corp' }, is: 'may 1' },
  'a person of one upstream, by the password': { user: has('corp'), policy: { findOnly: () => 'corp' }, is: 'only' },
  'a person of another upstream, by this one': { user: has('corp'), claim: by(CORP), policy: { findOnly: () => 'other' }, is: 'only' }
}

function show (judged: Judgement): string {
  if (judged.may) return `may ${judged.strength.acr}`
  return judged.because === 'below' ? `below ${judged.demanded}` : judged.because
}

t.test('who may sign in', async (t) => {
  for (const [name, { user = {}, claim = {}, policy = {}, is }] of Object.entries(TABLE)) {
    const record = user === null ? null : { ...USER, ...user }
    const store = { collection: () => ({ get: async () => record }) } as unknown as Store
    const maySignIn = createJudge({ store, now: () => Date.parse(NOW), ways: { withExisting: async (found) => found }, policy: { ...POLICY, ...policy } })
    t.equal(show(await maySignIn({ user_id: 'ann', epoch: 2, ...by(PASSWORD) as Pick<SignInClaim, 'proofs'>, ...claim })), is, name)
  }
})

t.test('a judgement rests on what stands: its strength, and what it asks to add to', async (t) => {
  const record = { ...USER, ...has('totp') }
  const store = { collection: () => ({ get: async () => record }) } as unknown as Store
  const maySignIn = createJudge({ store, now: () => Date.parse(NOW), ways: { withExisting: async (found) => found }, policy: POLICY })
  const [password, totp, gone]: Proof[] = [{ way: 'password', kind: 'password', at: PAST }, { way: 'totp', kind: 'totp', at: NOW }, { way: 'key', kind: 'passkey', uv: true, at: NOW }]
  t.match(await maySignIn({ user_id: 'ann', epoch: 2, proofs: [password!, gone!] }), { may: false, because: 'below', standing: [password!] })
  t.strictSame((await maySignIn({ user_id: 'ann', epoch: 2, proofs: [password!, totp!, gone!] }) as { strength?: object }).strength, toStrength([password!, totp!]))
})

t.test('a record that changes while the material is read is judged again', async (t) => {
  const [before, after] = [{ ...USER, ...has('totp'), revision: 1 }, { ...USER, ...has('key'), revision: 2 }]
  const reads = [before, after, after]
  const store = { collection: () => ({ get: async () => reads.shift() ?? after }) } as unknown as Store
  // The material of the app went with the app. That of the passkey was not in the record yet.
  const withExisting = async (user: UserRecord): Promise<UserRecord> => user.revision === 1 ? { ...user, ways: {} } : user
  const maySignIn = createJudge({ store, now: () => Date.parse(NOW), ways: { withExisting }, policy: POLICY })
  t.match(await maySignIn({ user_id: 'ann', epoch: 2, proofs: [{ way: 'password', kind: 'password', at: PAST }] }), { may: false, because: 'below', demanded: 'mfa' })
})
