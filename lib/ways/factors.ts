import type { SecretBox } from '../crypto/secrets.ts'
import { defined } from '../defined.ts'
import { IdentityError } from '../errors.ts'
import type { UserRecord } from '../records/user.ts'
import { findCountReason } from '../throttling/attempts.ts'
import type { CredentialRecord } from '../way.ts'
import type { HeldWay } from './existing-ways.ts'
import { type FactorUseParts, createFactorUse, toAppTarget } from './factor-use.ts'
import { type HeldCodesParts, createHeldCodes } from './held-codes.ts'
import { createSeed, findCodeStep, isOfOtherTime, toSeedContext, toSeedUri } from './totp.ts'
import { WayError } from './way-error.ts'
import { type WayActor, type WayService, isProved } from './ways.ts'

/** An authenticator app that is being added. */
export interface NewTotp {
  id: string
  /** The seed, in base32, for people who cannot scan the URI. */
  seed: string
  uri: string
}

const isLimit = (error: unknown): error is IdentityError => error instanceof IdentityError && error.code === 'ErrLimit'

export interface FactorsParts extends Omit<HeldCodesParts, 'use'>, FactorUseParts {
  ways: WayService
  box: SecretBox
  /** The issuer that authenticator apps show. */
  serviceName: string
}

/**
 * Second factors: authenticator apps (RFC 6238), and the recovery codes that come with the first one. Each step and each code is good
 * once, by a conditional update of its credential.
 */
export function createFactors (parts: FactorsParts) {
  const { store, now, ways, box, attempts, failures, serviceName } = parts
  const users = store.collection<UserRecord>('users')
  const use = createFactorUse(parts)
  const { listOf, openApp, openCodes, openSealed, open } = use

  /** Spends the time step of a code. Null for a wrong code, and for one whose step was used, also at the same moment. */
  async function spendStep (user_id: string, id: string, code: string, read: () => Promise<CredentialRecord | null>): Promise<string | null> {
    return await attempts.run(toAppTarget(id), async () => {
      const spent = await use.spend(read, async (credential) => {
        const step = await findCodeStep(openSealed(credential), code, now())
        return step === null || step <= Number(credential.material['step'] ?? 0) ? null : { ...credential.material, step }
      })
      return spent && id
    }, undefined, { onClosed: use.recordClosed(user_id, { kind: 'totp', id }) })
  }

  /** Whether a code that was refused is right for another time. It decides nothing. */
  async function isClockWrong (apps: readonly HeldWay[], code: string, time: number): Promise<boolean> {
    for (const { credential } of apps) if (await isOfOtherTime(openSealed(credential), code, time)) return true
    return false
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
      const seed = openSealed(prepared)
      return { id, seed, uri: await toSeedUri(seed, serviceName, account), proved: isProved(prepared) }
    },

    /**
     * Checks the first code of an authenticator app that is being added.
     * @returns whether it is right
     * @throws WayError `unknown` when there is no such enrolment, ErrLimit
     */
    async proveTotp (actor: WayActor, id: string, code: string): Promise<boolean> {
      const read = async () => await ways.findPrepared(actor, id)
      if ((await read())?.way.kind !== 'totp') throw new WayError('unknown')
      return await spendStep(actor.user_id, id, code, read) !== null
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
      const apps = await listOf(user, 'totp')
      const ids = apps.map(({ id }) => id)
      const refused: IdentityError[] = []
      for (const id of ids) {
        try {
          const spent = await spendStep(user_id, id, code, async () => (await ways.get(user, id))?.credential ?? null)
          if (spent === null) continue
          for (const other of ids) if (other !== id) await openApp(user_id, other)
          await openCodes(user)
          return id
        } catch (error) {
          if (!isLimit(error)) throw error
          refused.push(error)
        }
      }
      const method = defined({ kind: 'totp' as const, id: ids.length === 1 ? ids[0] : undefined })
      if (refused.length > 0 && refused.length === ids.length) {
        // No app could be tried. One in a pause can be tried again later, a locked one cannot.
        const error = refused.find(({ reason }) => reason === 'paused') ?? refused[0]!
        failures.recordFactor(user_id, { method, reason: findCountReason(error) ?? 'wrong_code' })
        throw error
      }
      const time = now()
      failures.recordFactor(user_id, { method, reason: async () => await isClockWrong(apps, code, time) ? 'clock' : 'wrong_code' })
      return null
    },

    ...createHeldCodes({ ...parts, use }),

    open
  }
}

export type Factors = ReturnType<typeof createFactors>
