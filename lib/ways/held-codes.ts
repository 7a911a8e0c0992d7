import type { Reason } from '../../schemas/reason.ts'
import type { SecretBox } from '../crypto/secrets.ts'
import { defined } from '../defined.ts'
import type { Failures } from '../events/failures.ts'
import type { Recorder } from '../events/recorder.ts'
import type { UserRecord } from '../records/user.ts'
import { type Actor, toTurn } from '../roles.ts'
import type { Store } from '../store/port.ts'
import { type Attempts, findCountReason } from '../throttling/attempts.ts'
import type { CredentialRecord } from '../way.ts'
import type { WayHolder } from './credentials.ts'
import { type FactorUse, toCodesTarget } from './factor-use.ts'
import { type SlowHash, countCodes, createCodes, findValue, readCodeSet } from './recovery-codes.ts'
import { toSeedContext } from './totp.ts'
import type { WayActor, WayService } from './ways.ts'

export interface HeldCodesParts {
  store: Store
  ways: Pick<WayService, 'checkMayPrepare' | 'prepare' | 'get'>
  box: Pick<SecretBox, 'seal'>
  attempts: Attempts
  recorder: Pick<Recorder, 'insert'>
  failures: Pick<Failures, 'recordFactor'>
  /** Slow hashes for codes. */
  slow: SlowHash
  use: FactorUse
}

/** The recovery codes that people have. Each is good once, by a conditional update of their set. */
export function createHeldCodes ({ store, ways, box, attempts, recorder, failures, slow, use }: HeldCodesParts) {
  const users = store.collection<UserRecord>('users')

  /** Spends a recovery code. The user is read again, because the set may have been replaced while the code was hashed. */
  async function spendCode (user_id: string, id: string, toValue: (key: () => string) => string): Promise<CredentialRecord | null> {
    const read = async () => {
      const user = await users.get(user_id)
      return user && ((await ways.get(user, id))?.credential ?? null)
    }
    return await use.spend(read, async (credential) => {
      const { hashes } = readCodeSet(credential)
      const value = toValue(() => use.openSealed(credential))
      return hashes.includes(value) ? { ...credential.material, hashes: hashes.filter((one) => one !== value) } : null
    })
  }

  return {
    /**
     * Prepares a set of recovery codes, which `name` of the way service makes valid. They are shown once.
     * @throws WayError `off`, ErrUnknown, ErrLimit, ErrBusy
     */
    async prepareCodes (actor: WayActor & Pick<Actor, 'signal'>): Promise<{ id: string, codes: string[] }> {
      // Before the hashes are made.
      await ways.checkMayPrepare(actor, { kind: 'recovery' })
      const { codes, set, key } = await createCodes(slow, toTurn(actor))
      const [id = ''] = await ways.prepare(actor, [{ kind: 'recovery', material: set, seal: (id) => box.seal(key, toSeedContext(id)) }])
      return { id, codes }
    },

    /** Whether a user has a recovery code left. */
    hasCodes: async (user: WayHolder): Promise<boolean> => countCodes(await use.listOf(user, 'recovery')) > 0,

    /**
     * Spends a recovery code, and opens the factors that were closed. One try takes one slow hash: it is of the set that the person has, and a
     * set that is not confirmed yet counts for nothing. The try is counted before it is hashed.
     * @param signal aborted when the caller has disconnected
     * @returns the id of the set; null for a wrong code
     * @throws ErrLimit when the codes are closed or in a pause, ErrBusy
     */
    async verifyCode (user_id: string, code: string, signal?: AbortSignal): Promise<string | null> {
      const user = await users.get(user_id)
      if (user === null) return null
      const set = (await use.listOf(user, 'recovery')).at(-1)
      const method = defined({ kind: 'recovery' as const, id: set?.id })
      const recordFailure = (reason: Reason) => { failures.recordFactor(user_id, { reason, method }) }
      if (set === undefined) {
        recordFailure('wrong_code')
        return null
      }
      const { id, credential } = set
      const spent = await attempts.run(toCodesTarget(user_id), async () => {
        const toValue = await findValue(readCodeSet(credential), code, slow, toTurn({ user_id, signal }))
        return toValue && await spendCode(user_id, id, toValue)
      }, signal, { onClosed: use.recordClosed(user_id, { kind: 'recovery', id }) }).catch((error: unknown) => {
        const reason = findCountReason(error)
        if (reason !== undefined) recordFailure(reason)
        throw error
      })
      if (spent === null) {
        recordFailure('wrong_code')
        return null
      }
      const left = readCodeSet(spent).hashes.length
      await recorder.insert({ type: 'recovery.used', id: user.id, method, count: left }, await use.writeTo('recovery-used', user, { count: String(left) }))
      await use.open(user)
      return id
    }
  }
}
