import t from 'tap'
import { ACRS, OLDEST_PROOF, type Proof, endsWithCode, findBeginning, reaches, toStrength } from '../../lib/proofs.ts'

const at = (hour: number): string => new Date(Date.UTC(2026, 0, 1, hour)).toISOString()

const password = (hour: number): Proof => ({ way: 'password', kind: 'password', at: at(hour) })
const upstream = (hour: number): Proof => ({ way: 'u', kind: 'upstream', at: at(hour) })
const totp = (hour: number): Proof => ({ way: 't', kind: 'totp', at: at(hour) })
const recovery = (hour: number): Proof => ({ way: 'r', kind: 'recovery', at: at(hour) })
const touch = (hour: number): Proof => ({ way: 'p', kind: 'passkey', uv: false, at: at(hour) })
const verified = (hour: number): Proof => ({ way: 'v', kind: 'passkey', uv: true, at: at(hour) })

const TABLE: [name: string, proofs: Proof[], amr: string[], acr: string, hour: number][] = [
  ['a password', [password(1)], ['pwd'], '1', 1],
  ['a password again', [password(1), password(2)], ['pwd'], '1', 2],
  ['an identity elsewhere', [upstream(1)], [], '1', 1],
  ['a password and an identity, which are one kind', [password(1), upstream(2)], ['pwd'], '1', 2],
  ['a code of an authenticator alone', [totp(1)], ['otp'], '1', 1],
  ['two proofs of what one has', [totp(1), recovery(2), touch(3)], ['otp', 'pop'], '1', 3],
  ['a password and a code', [password(1), totp(2)], ['pwd', 'otp', 'mfa'], 'mfa', 1],
  ['a code, and the password later', [totp(1), password(2)], ['otp', 'pwd', 'mfa'], 'mfa', 1],
  ['a password and a recovery code', [password(1), recovery(2)], ['pwd', 'otp', 'mfa'], 'mfa', 1],
  ['an identity and a code', [upstream(1), totp(2)], ['otp', 'mfa'], 'mfa', 1],
  ['a step-up long after the password', [password(1), totp(9)], ['pwd', 'otp', 'mfa'], 'mfa', 1],
  ['both again', [password(1), totp(1), password(5), totp(6)], ['pwd', 'otp', 'mfa'], 'mfa', 5],
  ['a passkey that verified nobody', [touch(1)], ['pop'], '1', 1],
  ['a passkey that says nothing of the user', [{ way: 'p', kind: 'passkey', at: at(1) }], ['pop'], '1', 1],
  ['a password and such a passkey', [password(1), touch(2)], ['pwd', 'pop', 'mfa'], 'phr', 1],
  ['an identity and such a passkey', [upstream(2), touch(1)], ['pop', 'mfa'], 'phr', 1],
  ['a passkey that verified the user', [verified(3)], ['pop', 'mfa'], 'phr', 3],
  ['a password, and such a passkey later, which needs no password', [password(1), verified(5)], ['pwd', 'pop', 'mfa'], 'phr', 5],
  ['such a passkey, and a password later', [verified(1), password(5)], ['pop', 'pwd', 'mfa'], 'phr', 1],
  ['a fresh password and code do not refresh a passkey', [touch(1), password(5), totp(6)], ['pop', 'pwd', 'otp', 'mfa'], 'phr', 1],
  ['the passkey that verified counts for another one that did not', [verified(4), touch(6)], ['pop', 'mfa'], 'phr', 4]
]

t.test('the strength of proofs: methods, class and time', async (t) => {
  for (const [name, proofs, amr, acr, hour] of TABLE) t.strictSame(toStrength(proofs), { amr, acr, time: at(hour) }, name)
})

t.test('the order of the proofs changes neither class nor time', async (t) => {
  for (const [name, proofs] of TABLE) {
    const { amr, acr, time } = toStrength(proofs)
    const reversed = toStrength(proofs.toReversed())
    t.strictSame({ ...reversed, amr: reversed.amr.toSorted() }, { amr: amr.toSorted(), acr, time }, name)
  }
})

t.test('a further proof never makes the class weaker', async (t) => {
  for (const [name, proofs] of TABLE) {
    for (const more of [password(12), upstream(12), totp(12), recovery(12), touch(12), verified(12)]) {
      t.ok(reaches(toStrength([...proofs, more]), toStrength(proofs).acr), `${name} and ${more.kind}`)
    }
  }
})

t.test('a sign-in has ended with a recovery code if that is its last proof', async (t) => {
  t.equal(endsWithCode([password(1), recovery(2)]), true)
  t.equal(endsWithCode([password(1), recovery(2), touch(3)]), false, 'what was added to it later')
  t.equal(endsWithCode([password(1), totp(2)]), false)
  t.equal(endsWithCode([]), false)
})

t.test('without a proof there is no strength', async (t) => {
  t.throws(() => toStrength([]), { message: 'there is no proof' })
})

t.test('a strength reaches its own class and the weaker ones', async (t) => {
  const reached = ACRS.map((acr) => ACRS.filter((demanded) => reaches({ acr }, demanded)))
  t.strictSame(reached, [['1'], ['1', 'mfa'], ['1', 'mfa', 'phr']])
})

t.test('an answer that does not say when is a day old for the strength, and not for the session that it begins', async (t) => {
  const undated: Proof = { ...upstream(9), undated: true }
  t.equal(toStrength([undated]).time, new Date(Date.parse(at(9)) - OLDEST_PROOF).toISOString())
  t.equal(findBeginning([undated]), at(9))
  t.equal(findBeginning([undated, totp(10)]), at(9))
  t.equal(findBeginning([password(3), undated]), at(9), 'the last of one kind')
  t.equal(findBeginning([upstream(5)]), at(5), 'a time that it says counts')
  t.strictSame(undated, { ...upstream(9), undated: true }, 'the proofs stay as they are')
})
