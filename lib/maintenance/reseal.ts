import type { Base } from '../base.ts'
import { IdentityError } from '../errors.ts'
import type { Recorder } from '../events/recorder.ts'
import { scan } from '../store/scan.ts'
import { retryWrite } from '../retry.ts'
import type { Document, Json } from '../store/port.ts'
import { toContext as toWebhookContext } from '../webhooks/secrets.ts'
import { toSeedContext } from '../ways/totp.ts'
import { SEAL_ID, type Seal, retireFormer } from '../crypto/seal.ts'
import { readKeyId } from '../crypto/secrets.ts'

/** A field that holds a sealed text. */
interface SealedField {
  collection: string
  field: string
  /** A number in the record. Every write of the sealed field increments it, or requires it to be unchanged. */
  guard: string
  /** Whether resealing increments the number too. */
  counts: boolean
  /** The context that the text was sealed with. */
  toContext (id: string): string
}

const ofRecord = (collection: string, field: string): SealedField => ({ collection, field, guard: 'revision', counts: true, toContext: (id) => id })

/** Every sealed field of the store. */
export const SEALED_FIELDS: readonly SealedField[] = [
  // The keys of the authorization server come first, because everything else needs them.
  ofRecord('keys', 'sealed'),
  ofRecord('clients', 'secret'),
  { ...ofRecord('credentials', 'sealed'), toContext: toSeedContext },
  ofRecord('device_codes', 'sealed'),
  ofRecord('interactions', 'sealed'),
  ofRecord('sign_ins', 'sealed'),
  { ...ofRecord('webhooks', 'sealed'), toContext: toWebhookContext },
  // A claim gives one process the right to send the mail. If that process stores the composed message meanwhile, this write puts
  // the job back, and the message is composed again.
  { collection: 'deliveries', field: 'sealed', guard: 'claim', counts: false, toContext: (id) => `delivery ${id}` }
]

type SealedRecord = Document & Record<string, Json>

/** Concurrent writes. */
const AT_ONCE = 16
/** The most passes over the store. If the last one still finds work, some process seals with a former key. */
const PASSES = 4
/** The most records that an error message names. */
const NAMED = 5

/** A key, with the number of stored texts that were sealed with it. */
interface SealingKey {
  key_id: string
  /** `seals`, `opens` (stored texts may need it), `new` (seals nothing yet), `unused` or `missing`. */
  state: 'seals' | 'opens' | 'new' | 'unused' | 'missing'
  texts: number
}

/** Everything sealed in the store, for a rotation of the secret key. */
export function createSealing ({ store, box, recorder }: Pick<Base, 'store' | 'box'> & { recorder: Pick<Recorder, 'insert'> }) {
  const meta = store.collection<Seal>('meta')

  async function readSeal (): Promise<Seal> {
    return await meta.get(SEAL_ID) ?? { id: SEAL_ID, key_id: box.keyId }
  }

  /** Reseals one record if needed. Resolves to whether it did. */
  async function resealOne ({ collection, field, guard, counts, toContext }: SealedField, id: string): Promise<boolean> {
    const records = store.collection<SealedRecord>(collection)
    return await retryWrite('a record', async () => {
      let record = await records.get(id)
      const sealed = record?.[field]
      if (record === null || typeof sealed !== 'string' || readKeyId(sealed) === box.keyId) return false
      // A record of an earlier release: from here on every write changes the number.
      if (record[guard] === undefined) record = await records.update(id, { increment: { [guard]: 1 } })
      const [text, number] = [record?.[field], record?.[guard]]
      if (typeof text !== 'string' || typeof number !== 'number') return null
      const set = { [field]: box.seal(box.open(text, toContext(id)), toContext(id)) }
      return await records.update(id, { set, increment: counts ? { [guard]: 1 } : undefined }, { equal: { [guard]: number } }) !== null || null
    })
  }

  async function * findTexts (signal?: AbortSignal): AsyncGenerator<{ of: SealedField, id: string, keyId: string }[]> {
    for (const of of SEALED_FIELDS) {
      for await (const batch of scan(store.collection<SealedRecord>(of.collection), {})) {
        signal?.throwIfAborted()
        yield batch.flatMap((record) => {
          const sealed = record[of.field]
          return typeof sealed === 'string' ? [{ of, id: record.id, keyId: readKeyId(sealed) }] : []
        })
      }
    }
  }

  return {
    /** Every configured key and every key that the store needs, each with the number of texts sealed with it. */
    async status (): Promise<SealingKey[]> {
      const counts = new Map<string, number>()
      for await (const texts of findTexts()) for (const { keyId } of texts) counts.set(keyId, (counts.get(keyId) ?? 0) + 1)
      const { key_id, former = [], announced = [] } = await readSeal()
      return [...new Set([key_id, ...former, ...box.keyIds, ...counts.keys()])].map((id) => {
        const texts = counts.get(id) ?? 0
        const isNeeded = texts > 0 || former.includes(id)
        const state = !box.keyIds.includes(id) ? 'missing' : id === key_id ? 'seals' : isNeeded ? 'opens' : announced.includes(id) ? 'new' : 'unused'
        return { key_id: id, state, texts }
      })
    },

    /**
     * Reseals with the first key everything that was sealed with another key, and then retires the former keys. Each record
     * takes one conditional write. After an interruption, another call continues.
     * @returns the number of resealed texts
     * @throws Error when the store seals with another key, or a text cannot be opened; all other texts are resealed
     */
    async reseal ({ signal }: { signal?: AbortSignal } = {}): Promise<number> {
      let total = 0
      for (let pass = 0; pass < PASSES; pass++) {
        const seal = await readSeal()
        if (seal.key_id !== box.keyId) {
          throw new Error(`the service seals with the key ${seal.key_id}: put the new key first, restart every process, and then reseal`)
        }
        const unreadable: string[] = []
        let count = 0
        for await (const texts of findTexts(signal)) {
          const due = texts.filter(({ keyId }) => keyId !== box.keyId)
          for (let start = 0; start < due.length; start += AT_ONCE) {
            signal?.throwIfAborted()
            const done = await Promise.all(due.slice(start, start + AT_ONCE).map(async ({ of, id }) => await resealOne(of, id).catch((error: unknown) => {
              if (!(error instanceof IdentityError) || error.code !== 'ErrInternal') throw error
              unreadable.push(`${of.collection} ${id}`)
              return false
            })))
            count += done.filter(Boolean).length
          }
        }
        total += count
        if (unreadable.length > 0) {
          throw new Error(`${unreadable.length} sealed texts cannot be opened, ${unreadable.slice(0, NAMED).join(', ')}: configure the key that they were sealed with, or replace the secrets`)
        }
        if (count === 0 && (seal.former === undefined || seal.former.length === 0 || await retireFormer(store, seal))) {
          await recorder.insert({ type: 'key.resealed', id: box.keyId, count: total })
          return total
        }
      }
      throw new Error('some process still seals with a previous key: restart every process with the new key first, and reseal again')
    }
  }
}

export type Sealing = ReturnType<typeof createSealing>
