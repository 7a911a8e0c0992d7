import { type Clock, toTimestamp } from '../clock.ts'
import type { SecretBox } from '../crypto/secrets.ts'
import { IdentityError } from '../errors.ts'
import type { Failures } from '../events/failures.ts'
import type { Recorder } from '../events/recorder.ts'
import type { UserRecord } from '../records.ts'
import type { Store } from '../store/port.ts'
import type { Attempts, Target } from '../throttling/attempts.ts'
import { type HeldWay, type WayActor, WayError, type WayService } from './ways.ts'
import type { WayHolder } from './credentials.ts'
import { createCodes, hashCode } from './recovery-codes.ts'
import { createSeed, findCodeStep, toSeedContext, toSeedUri } from './totp.ts'

/** An authenticator app that is being added. */
export interface NewTotp {
  id: string
  /** The seed, in base32, for people who cannot scan the URI. */
  seed: string
  uri: string
}

const toTarget = (id: string): Target => ({ kind: 'factor', name: id })

function isClosed (error: unknown): error is IdentityError {
  return error instanceof IdentityError && error.code === 'ErrLimit'
}

/**
 * Second factors: authenticator apps (RFC 6238), and the recovery codes that come with the first one. Each step and each code is good
 * once, by a conditional update of its credential.
 */
export function createFactors ({ store, now, ways, box, attempts, recorder, failures, serviceName }: {
  store: Store
  now: Clock
  ways: WayService
  box: SecretBox
  attempts: Attempts
  recorder: Pick<Recorder, 'insert'>
  failures: Pick<Failures, 'recordFactor'>
  /** The issuer that authenticator apps show. */
  serviceName: string
}) {
  const users = store.collection<UserRecord>('users')

  const listOf = async (user: WayHolder, kind: HeldWay['way']['kind']): Promise<HeldWay[]> => (
    (await ways.list(user)).filter(({ way }) => way.kind === kind))

  const openSeed = ({ id, sealed }: { id: string, sealed?: string }): string => box.open(sealed ?? '', toSeedContext(id))

  /** Opens the factors of a user that too many failures have closed. */
  async function open (user: WayHolder): Promise<void> {
    await Promise.all((await listOf(user, 'totp')).map(({ id }) => attempts.clear(toTarget(id))))
  }

  /** Spends the step of a code. Null for a wrong code, and for one whose step was used, also at the same moment. */
  async function spendStep (held: HeldWay, code: string): Promise<string | null> {
    const { credential } = held
    const step = await findCodeStep(openSeed(credential), code, now())
    if (step === null || step <= Number(credential.material['step'] ?? 0)) return null
    const spent = await ways.update(credential, { material: { ...credential.material, step }, last_used_at: toTimestamp(now()) })
    return spent === null ? null : held.id
  }

  return {
    /**
     * Begins to add an authenticator app. It counts for nothing before `name` of the way service names it, after `proveTotp`.
     * @throws ErrUnknown, ErrLimit
     */
    async beginTotp (actor: WayActor, account: string, name?: string): Promise<NewTotp> {
      const seed = await createSeed()
      const [id] = await ways.prepare(actor, [{
        kind: 'totp', material: {}, ...(name !== undefined && { name }), seal: (id) => box.seal(seed, toSeedContext(id))
      }])
      return { id: id!, seed, uri: await toSeedUri(seed, serviceName, account) }
    },

    /** The seed of an authenticator app that is being added, to show it again. Null for any other. */
    async findBegun (actor: WayActor, id: string, account: string): Promise<NewTotp & { proved: boolean } | null> {
      const prepared = await ways.findPrepared(actor, id)
      if (prepared?.way.kind !== 'totp') return null
      const seed = openSeed(prepared)
      return { id, seed, uri: await toSeedUri(seed, serviceName, account), proved: prepared.material['step'] !== undefined }
    },

    /**
     * Checks the first code of an authenticator app that is being added.
     * @returns whether it is right
     * @throws WayError `unknown` when there is no such enrolment, ErrLimit
     */
    async proveTotp (actor: WayActor, id: string, code: string): Promise<boolean> {
      const credential = await ways.findPrepared(actor, id)
      if (credential?.way.kind !== 'totp') throw new WayError('unknown')
      const proved = await attempts.run(toTarget(id), async () => await spendStep({ id, way: { ...credential.way, at: '' }, credential }, code))
      return proved !== null
    },

    /** Prepares a set of recovery codes, which `name` of the way service makes valid. They are shown once. */
    async prepareCodes (actor: WayActor): Promise<{ id: string, codes: string[] }> {
      const { codes, hashes } = createCodes()
      const [id] = await ways.prepare(actor, [{ kind: 'recovery', material: { hashes } }])
      return { id: id!, codes }
    },

    /** The number of recovery codes that are left. */
    async countCodes (user: WayHolder): Promise<number> {
      const [held] = await listOf(user, 'recovery')
      return (held?.credential.material['hashes'] as string[] | undefined)?.length ?? 0
    },

    /**
     * Verifies a code of any of the user's authenticator apps. A failure counts for each of them, whatever the user's epoch: a new password
     * opens nothing.
     * @returns the id of the app; null for a wrong code
     * @throws ErrLimit when all of them are closed or in a pause
     */
    async verifyTotp (user_id: string, code: string): Promise<string | null> {
      const user = await users.get(user_id)
      if (user === null) return null
      let refused: IdentityError | undefined
      let tried = false
      for (const held of await listOf(user, 'totp')) {
        try {
          const id = await attempts.run(toTarget(held.id), async () => await spendStep(held, code))
          if (id !== null) {
            await open(user)
            return id
          }
          tried = true
        } catch (error) {
          if (!isClosed(error)) throw error
          refused = error
        }
      }
      failures.recordFactor(user_id)
      if (!tried && refused !== undefined) throw refused
      return null
    },

    /**
     * Spends a recovery code, and opens the factors that were closed.
     * @returns the id of the set; null for a wrong code
     */
    async verifyCode (user_id: string, code: string): Promise<string | null> {
      const user = await users.get(user_id)
      if (user === null) return null
      for (const { id, credential } of await listOf(user, 'recovery')) {
        const hashes = credential.material['hashes'] as string[]
        const left = hashes.filter((one) => one !== hashCode(code))
        if (left.length === hashes.length) continue
        if (await ways.update(credential, { material: { hashes: left }, last_used_at: toTimestamp(now()) }) === null) continue
        await recorder.insert({ type: 'recovery.used', id: user.id, count: left.length })
        await open(user)
        return id
      }
      failures.recordFactor(user_id)
      return null
    },

    open
  }
}

export type Factors = ReturnType<typeof createFactors>
