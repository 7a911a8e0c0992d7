import { type KeyObject, createHmac, randomBytes } from 'node:crypto'
import type { Clock } from '../clock.ts'
import type { UserRecord } from '../records/user.ts'
import { retryWrite } from '../retry.ts'
import { type Document, DuplicateKeyError, type Store } from '../store/port.ts'
import { findHash } from './foreign.ts'
import { toBase64 } from './encoding.ts'

/** The most forms that are told apart. Hashes of any other form count as the one that takes the most similar time. */
const MOST_FORMS = 16

/** Milliseconds for which the shares of the forms are kept. */
const FRESH = 10 * 60_000

const ID = 'password_schemes'

/** The forms that imports have brought: `$2b$10$~53` (ReadHash). */
interface FormsRecord extends Document {
  forms: string[]
  revision: number
}

/** A random text of the alphabet that all schemes share. It is base64 without padding wherever base64 can have this length. */
function makeText (length: number): string {
  return toBase64(randomBytes(Math.floor(length * 3 / 4))).replaceAll('+', '/').padEnd(length, '.')
}

/** A hash of this form that no password matches. */
export const makeDecoy = (form: string): string => form.replaceAll(/~(\d+)/g, (_match, length: string) => makeText(Number(length)))

/** A hash of our own is one of bcrypt behind a salt. */
const readWork = (form: string): number => findHash(makeDecoy(form.replace(/^~\d+/, '')))?.work ?? 1

/** Of these forms, the one whose comparison takes the most similar time. */
function findSimilar (form: string, forms: readonly string[]): string {
  const work = readWork(form)
  const distance = (other: string) => Math.abs(Math.log(readWork(other) / work))
  return forms.reduce((best, other) => distance(other) < distance(best) ? other : best)
}

/**
 * Chooses what an unknown account is compared with: a hash of another program for as many accounts as have such hashes. The key
 * `password_scheme` of users has the form of theirs, so that the shares always follow the stored accounts.
 */
export function createDecoys ({ store, now, getKey, onError }: { store: Store, now: Clock, getKey: () => KeyObject, onError: (error: unknown) => void }) {
  const users = store.collection<UserRecord>('users')
  const documents = store.collection<FormsRecord>('meta')
  /** The forms in use, each with the end of its part of the range from 0 to 1. Our own hashes have what is before the first. */
  let shares: { from: number, parts: { end: number, decoy: string }[] } = { from: 1, parts: [] }
  let reading: { at: number, done: Promise<void> } | undefined
  let isRead = false

  async function read (): Promise<void> {
    const forms = (await documents.get(ID))?.forms ?? []
    const counts = await Promise.all(forms.map((form) => users.count({ equal: { password_scheme: form } }, { urgent: true })))
    const foreign = counts.reduce((sum, count) => sum + count, 0)
    const all = foreign === 0 ? 0 : await users.count()
    let end = foreign === 0 ? 1 : Math.max(0, 1 - foreign / all)
    const from = end
    const parts = forms.flatMap((form, index) => {
      if (counts[index] === 0) return []
      end += counts[index]! / all
      return [{ end, decoy: makeDecoy(form) }]
    })
    shares = { from, parts }
  }

  /** Reads the shares again after a while. Callers wait for them only until they were read once. */
  async function refresh (): Promise<void> {
    if (reading === undefined || now() - reading.at >= FRESH || now() < reading.at) {
      const done = read().then(() => { isRead = true }, (error: unknown) => {
        reading = undefined
        onError(error)
      })
      reading = { at: now(), done }
    }
    if (!isRead) await reading.done
  }

  return {
    /** The hash for an account that has none, always one of the same form for the same account and shares. Undefined: one of our own. */
    async choose (account: string): Promise<string | undefined> {
      await refresh()
      const point = createHmac('sha256', getKey()).update(account).digest().readUIntBE(0, 6) / 2 ** 48
      if (point < shares.from) return undefined
      return shares.parts.find(({ end }) => point < end)?.decoy ?? shares.parts.at(-1)?.decoy
    },

    /** Registers the form of hashes that an import brings. @returns the form that stands for it */
    async register (form: string): Promise<string> {
      return await retryWrite('the forms of password hashes', async () => {
        const found = await documents.get(ID)
        if (found === null) {
          const isInserted = await documents.insert({ id: ID, forms: [form], revision: 0 }).then(() => true, (error: unknown) => {
            if (error instanceof DuplicateKeyError) return false
            throw error
          })
          return isInserted ? form : null
        }
        const { forms, revision } = found
        if (forms.includes(form)) return form
        if (forms.length >= MOST_FORMS) return findSimilar(form, forms)
        const written = await documents.update(ID, { set: { forms: [...forms, form] }, increment: { revision: 1 } }, { equal: { revision } })
        return written && form
      })
    }
  }
}

export type Decoys = ReturnType<typeof createDecoys>
