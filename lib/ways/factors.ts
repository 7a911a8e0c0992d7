import { type Clock, toTimestamp } from '../clock.ts'
import type { SecretBox } from '../crypto/secrets.ts'
import { IdentityError } from '../errors.ts'
import type { Failures } from '../events/failures.ts'
import type { Recorder } from '../events/recorder.ts'
import type { Notice, Notices, NoticeKind } from '../notice.ts'
import { type UserRecord, isActive } from '../records.ts'
import { retryWrite } from '../retry.ts'
import type { Store } from '../store/port.ts'
import type { Attempts, Target } from '../throttling/attempts.ts'
import type { HeldWay } from './existing-ways.ts'
import { WayError } from './way-error.ts'
import { type WayActor, type WayService, isProved } from './ways.ts'
import type { WayHolder } from './credentials.ts'
import type { CredentialRecord } from '../way.ts'
import { createCodes, hashCode } from './recovery-codes.ts'
import { createSeed, findCodeStep, toSeedContext, toSeedUri } from './totp.ts'

/** An authenticator app that is being added. */
export interface NewTotp {
  id: string
  /** The seed, in base32, for people who cannot scan the URI. */
  seed: string
  uri: string
}

const readHashes = ({ material }: Pick<CredentialRecord, 'material'>): string[] => material['hashes'] as string[]

/** The number of recovery codes that are left among the ways of a user. */
export function countCodes (held: readonly HeldWay[]): number {
  const codes = held.find(({ way }) => way.kind === 'recovery')
  return codes === undefined ? 0 : readHashes(codes.credential).length
}

const toTarget = (id: string): Target => ({ kind: 'factor', name: id })

const isLimit = (error: unknown): error is IdentityError => error instanceof IdentityError && error.code === 'ErrLimit'

export interface FactorsParts {
  store: Store
  now: Clock
  ways: WayService
  box: SecretBox
  attempts: Attempts
  recorder: Pick<Recorder, 'insert'>
  failures: Pick<Failures, 'recordFactor'>
  /** The issuer that authenticator apps show. */
  serviceName: string
  notices: Notices
}

/**
 * Second factors: authenticator apps (RFC 6238), and the recovery codes that come with the first one. Each step and each code is good
 * once, by a conditional update of its credential.
 */
export function createFactors ({ store, now, ways, box, attempts, recorder, failures, serviceName, notices }: FactorsParts) {
  const users = store.collection<UserRecord>('users')

  /** A mail about something that has happened without a change of the user's record. */
  const writeTo = async (kind: NoticeKind, user: UserRecord, values?: Notice['values']): Promise<Notice[]> => (
    isActive(user, toTimestamp(now())) ? await notices.write(kind, user, { ...(values && { values }) }) : [])

  /** Reads only the material of this kind. */
  const listOf = async ({ id, ways: named = {} }: WayHolder, kind: HeldWay['way']['kind']): Promise<HeldWay[]> => (
    await ways.list({ id, ways: Object.fromEntries(Object.entries(named).filter(([, way]) => way.kind === kind)) }))

  const openSeed = ({ id, sealed }: { id: string, sealed?: string }): string => box.open(sealed ?? '', toSeedContext(id))

  /** Ends the counts of failures, which opens what too many of them have closed. */
  async function openEach (user_id: string, ids: readonly string[]): Promise<void> {
    for (const id of ids) if (await attempts.clear(toTarget(id))) await recorder.insert({ type: 'factor.opened', id: user_id })
  }

  /** Opens the factors of a user that too many failures have closed. */
  async function open (user: WayHolder): Promise<void> {
    await openEach(user.id, (await listOf(user, 'totp')).map(({ id }) => id))
  }

  /**
   * Spends a code by a conditional update of its credential, which is read again after another write.
   * @param spend the change of the material; null for a wrong code
   * @returns the changed credential; null for a wrong code
   */
  async function spend (
    read: () => Promise<CredentialRecord | null>, change: (credential: CredentialRecord) => Promise<CredentialRecord['material'] | null>
  ): Promise<CredentialRecord | null> {
    const { spent } = await retryWrite('the second factor', async () => {
      const credential = await read()
      const material = credential && await change(credential)
      if (material === null) return { spent: null }
      const spent = await ways.update(credential!, { material, last_used_at: toTimestamp(now()) })
      return spent && { spent }
    })
    return spent
  }

  /** Spends the time step of a code. Null for a wrong code, and for one whose step was used, also at the same moment. */
  async function spendStep (user_id: string, id: string, code: string, read: () => Promise<CredentialRecord | null>): Promise<string | null> {
    const onClosed = async () => {
      const user = await users.get(user_id)
      // Nothing about an app that is still being added: only its owner types codes for it.
      const mails = user !== null && Object.hasOwn(user.ways ?? {}, id) ? await writeTo('factor-closed', user) : []
      await recorder.insert({ type: 'factor.closed', id: user_id }, mails)
    }
    return await attempts.run(toTarget(id), async () => {
      const spent = await spend(read, async (credential) => {
        const step = await findCodeStep(openSeed(credential), code, now())
        return step === null || step <= Number(credential.material['step'] ?? 0) ? null : { ...credential.material, step }
      })
      return spent && id
    }, undefined, { onClosed })
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

    /** Prepares a set of recovery codes, which `name` of the way service makes valid. They are shown once. */
    async prepareCodes (actor: WayActor): Promise<{ id: string, codes: string[] }> {
      const { codes, hashes } = createCodes()
      const [id] = await ways.prepare(actor, [{ kind: 'recovery', material: { hashes } }])
      return { id: id!, codes }
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
      const ids = (await listOf(user, 'totp')).map(({ id }) => id)
      const refused: IdentityError[] = []
      for (const id of ids) {
        try {
          const spent = await spendStep(user_id, id, code, async () => (await ways.get(user, id))?.credential ?? null)
          if (spent === null) continue
          await openEach(user_id, ids.filter((other) => other !== id))
          return id
        } catch (error) {
          if (!isLimit(error)) throw error
          refused.push(error)
        }
      }
      failures.recordFactor(user_id)
      // Of those that could not be tried, one in a pause can be tried again.
      if (refused.length > 0 && refused.length === ids.length) throw refused.find(({ reason }) => reason === 'paused') ?? refused[0]!
      return null
    },

    /** Whether a user has a recovery code left. */
    hasCodes: async (user: WayHolder): Promise<boolean> => countCodes(await listOf(user, 'recovery')) > 0,

    /**
     * Spends a recovery code, and opens the factors that were closed.
     * @returns the id of the set; null for a wrong code
     */
    async verifyCode (user_id: string, code: string): Promise<string | null> {
      const user = await users.get(user_id)
      if (user === null) return null
      const hash = hashCode(code)
      for (const { id } of await listOf(user, 'recovery')) {
        const spent = await spend(async () => (await ways.get(user, id))?.credential ?? null, async (credential) => {
          const hashes = readHashes(credential)
          return hashes.includes(hash) ? { hashes: hashes.filter((one) => one !== hash) } : null
        })
        if (spent === null) continue
        const left = readHashes(spent).length
        await recorder.insert({ type: 'recovery.used', id: user.id, count: left }, await writeTo('recovery-used', user, { count: String(left) }))
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
