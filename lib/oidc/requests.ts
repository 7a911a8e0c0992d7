import { randomInt } from 'node:crypto'
import type { Provider } from 'oidc-provider'
import { toTimestamp } from '../clock.ts'
import { type Document, DuplicateKeyError } from '../store/port.ts'
import type { Freshness } from '../sign-in/freshness.ts'
import { hashToken } from '../crypto/random-token.ts'
import { type AdapterParts, LIFETIMES, type ModelAdapter, type Payload, toPayload, toStored } from './model-adapter.ts'

interface RequestRecord extends Document {
  created_at: string
  expired_at: string
  consumed: boolean
  payload?: Payload
  sealed?: string
  /** On interactions: a new random number at each `put`, so that a conditional write notices the change. */
  revision?: number
}

/** Interactions: authorizations that wait for their user. The payload holds codes and cookie values, so it is sealed. */
export function adaptInteractions ({ store, box, times, getContext }: AdapterParts): ModelAdapter {
  const interactions = store.collection<RequestRecord>('interactions')

  /** Whether this request stores an interaction of somebody who has not submitted a form. Our own forms have no context. */
  function isUntouched ({ session, lastSubmission }: Payload): boolean {
    return getContext() !== undefined && lastSubmission === undefined && (session as { accountId?: string } | undefined)?.accountId === undefined
  }

  return {
    async upsert (id, payload, expiresIn) {
      const key = hashToken(id)
      await interactions.put({
        id: key,
        ...times.lifetime(isUntouched(payload) ? Math.min(expiresIn, LIFETIMES.untouched) : expiresIn),
        consumed: false,
        revision: randomInt(2 ** 40),
        sealed: box.seal(JSON.stringify(payload), key)
      })
    },
    async find (id) {
      const record = await interactions.get(hashToken(id))
      // oidc-provider relies on the store, which removes expired records in its own time.
      if (record?.sealed === undefined || record.expired_at <= toTimestamp(times.now())) return undefined
      return toPayload({ ...record, payload: JSON.parse(box.open(record.sealed, record.id)) as Payload }, id, times)
    },
    async destroy (id) {
      await interactions.delete(hashToken(id))
    }
  }
}

/** Without this, oidc-provider would resume the interaction only in the session in which it began. */
export async function detachInteraction (interaction: InstanceType<Provider['Interaction']>): Promise<void> {
  delete (interaction.session as { uid?: string } | undefined)?.uid
  await interaction.save(interaction.exp - Math.floor(Date.now() / 1000))
}

/** From now on it is resumed in this session only, so that a sign-out before the browser goes on is final. */
export async function attachInteraction (interaction: InstanceType<Provider['Interaction']>, uid: string): Promise<void> {
  Object.assign(interaction.session ?? {}, { uid })
  await interaction.save(interaction.exp - Math.floor(Date.now() / 1000))
}

/** Makes an interaction last, because its user has submitted a form. */
export async function keepInteraction ({ store, times }: Pick<AdapterParts, 'store' | 'times'>, uid: string): Promise<void> {
  const { expired_at } = times.lifetime(LIFETIMES.interaction)
  await store.collection<RequestRecord>('interactions').update(hashToken(uid), { set: { expired_at } }, { before: { expired_at } })
}

/** What a request asks of the time of the sign-in; undefined for one that does not. */
export function readFreshness ({ prompt, max_age: age }: Record<string, unknown>, asked_at: string): Freshness | undefined {
  const asksToSignIn = typeof prompt === 'string' && prompt.split(' ').includes('login')
  if (asksToSignIn || age !== undefined) return { asked_at, maxAge: asksToSignIn ? 0 : Number(age) }
  return undefined
}

/** Pushed authorization requests (RFC 9126), used once. */
export function adaptPushedRequests ({ store, times, errors }: AdapterParts): ModelAdapter {
  const requests = store.collection<RequestRecord>('pushed_requests')
  return {
    async upsert (id, payload, expiresIn) {
      await requests.insert({ id: hashToken(id), ...times.lifetime(expiresIn), consumed: false, payload: toStored(payload) })
    },
    async find (id) {
      const record = await requests.get(hashToken(id))
      // oidc-provider would accept it for some time after its end, see `clockTolerance`.
      return record === null || record.expired_at <= toTimestamp(times.now()) ? undefined : toPayload(record, id, times)
    },
    async consume (id) {
      const spent = await requests.update(hashToken(id), { set: { consumed: true } }, { equal: { consumed: false } })
      if (spent === null) throw new errors.InvalidRequestUri('request_uri is invalid, expired, or was already used')
    },
    async destroy (id) {
      await requests.delete(hashToken(id))
    }
  }
}

/**
 * Used DPoP proofs (RFC 9449, 11.1). assertions.ts stores the used assertions of clients in the same collection. oidc-provider first looks
 * for the proof. Of two concurrent uses, the unique id refuses one.
 */
export function adaptProofs ({ store, times, errors, getContext }: AdapterParts): ModelAdapter {
  const proofs = store.collection<RequestRecord>('proofs')
  return {
    async upsert (id, payload, expiresIn) {
      try {
        await proofs.insert({ id, ...times.lifetime(expiresIn), consumed: false, payload: toStored(payload) })
      } catch (error) {
        if (!(error instanceof DuplicateKeyError)) throw error
        const message = 'DPoP proof JWT Replay detected'
        if (getContext()?.oidc.route === 'userinfo') throw new errors.InvalidToken(message)
        throw new errors.InvalidGrant(message)
      }
    },
    async find (id) {
      const record = await proofs.get(id)
      return record === null ? undefined : toPayload(record, id, times)
    }
  }
}
