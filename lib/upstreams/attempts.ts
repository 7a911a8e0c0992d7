import type { Base } from '../base.ts'
import { toLifetime, toTimestamp } from '../clock.ts'
import { createToken, hashToken } from '../crypto/random-token.ts'
import { type Document, DuplicateKeyError } from '../store/port.ts'
import { UpstreamError } from './failure.ts'
import type { Intent } from './intent.ts'

/** Seconds for a sign-in at the provider, and then for what follows it here. */
const LIFE = 10 * 60

/** An authorization that waits for its answer. The id is a hash of its state. */
interface AttemptRecord extends Document {
  upstream: string
  redirect_uri: string
  intent: Intent
  /** The hash of a secret of the browser that began it. */
  browser: string
  /** The nonce and the verifier, sealed under the id. */
  sealed: string
  revision: number
  /** The name that Apple sends once, with the form. */
  name?: string
  created_at: string
  expired_at: string
}

/** A session that a provider was asked about without a page. The id is a hash of its uid. */
interface RenewalRecord extends Document {
  created_at: string
  expired_at: string
}

/** An attempt whose answer this browser brings. */
export interface Attempt extends Pick<AttemptRecord, 'id' | 'upstream' | 'redirect_uri' | 'name' | 'created_at'> {
  intent: Intent
  state: string
  nonce: string
  verifier: string
}

const toId = (state: string): string => hashToken(`upstream ${state}`)

const toBrowser = (secret: string): string => hashToken(`upstream browser ${secret}`)

/** The authorizations that browsers have begun. Each is spent once, by the browser that began it, within ten minutes. */
export function createUpstreamAttempts ({ store, box, now }: Pick<Base, 'store' | 'box' | 'now'>) {
  const records = store.collection<AttemptRecord>('sign_ins')
  const renewals = store.collection<RenewalRecord>('sign_ins')

  async function find (state: string): Promise<AttemptRecord | null> {
    const record = await records.get(toId(state))
    return record?.redirect_uri === undefined || record.expired_at <= toTimestamp(now()) ? null : record
  }

  return {
    /** @param secret of the browser */
    async begin (
      secret: string, { upstream, redirectUri, intent }: { upstream: string, redirectUri: string, intent: Intent }
    ): Promise<Pick<Attempt, 'state' | 'nonce' | 'verifier'>> {
      const made = { state: createToken(), nonce: createToken(), verifier: createToken() }
      const id = toId(made.state)
      await records.insert({
        id,
        upstream,
        redirect_uri: redirectUri,
        intent,
        browser: toBrowser(secret),
        sealed: box.seal(JSON.stringify([made.nonce, made.verifier]), id),
        revision: 0,
        ...toLifetime(now(), LIFE)
      })
      return made
    },

    /** Whether a session may be renewed now. Once it may, and then not for ten minutes, so that no browser goes round for ever. */
    async mayRenew (session: string): Promise<boolean> {
      const id = hashToken(`renewal ${session}`)
      await renewals.delete(id, { before: { expired_at: toTimestamp(now() + 1) } })
      try {
        await renewals.insert({ id, ...toLifetime(now(), LIFE) })
        return true
      } catch (error) {
        if (error instanceof DuplicateKeyError) return false
        throw error
      }
    },

    /** Keeps the name that came with a form. The browser is compared when the answer comes. */
    async keepName (upstream: string, state: string, name: string): Promise<void> {
      const record = await find(state)
      if (record?.upstream === upstream) await records.update(record.id, { set: { name } })
    },

    /**
     * The attempt of a browser. It stays good until `spend`.
     * @param upstream the one whose redirect URI was called. An attempt at another one is spent: the providers were mixed up
     * @throws UpstreamError `over`
     */
    async require (upstream: string, state: string, secret: string | undefined): Promise<Attempt> {
      const record = await find(state)
      if (record === null || secret === undefined || record.browser !== toBrowser(secret)) throw new UpstreamError('over')
      const { id, redirect_uri, created_at, intent, name } = record
      if (record.upstream !== upstream) {
        await records.delete(id)
        throw new UpstreamError('over')
      }
      const [nonce, verifier] = JSON.parse(box.open(record.sealed, id)) as [string, string]
      return { id, upstream, redirect_uri, created_at, intent, state, nonce, verifier, name }
    },

    /** Spends an attempt, so that a second answer finds none. @throws UpstreamError `over` where another answer came first */
    async spend ({ id }: Pick<Attempt, 'id'>): Promise<void> {
      if (!await records.delete(id)) throw new UpstreamError('over')
    }
  }
}
