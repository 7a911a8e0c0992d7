import type { BackgroundWork } from '../base.ts'
import { type Clock, toTimestamp } from '../clock.ts'
import { isAhead } from '../deadline.ts'
import { IdentityError } from '../errors.ts'
import { readMessage } from '../failure.ts'
import { FairQueue } from '../fair-queue.ts'
import { OutboundError, type Outbound } from '../outbound/fetcher.ts'
import { type Image, MOST_IMAGE, recognizeImage } from '../pages/image.ts'
import { type ClientRecord, isVouchedFor } from '../records/client.ts'
import { type Document, DuplicateKeyError, type Store } from '../store/port.ts'

/** Our copy of the image of a client that the operator vouches for. The id is the client's. */
export interface LogoRecord extends Document {
  /** The URL that it was fetched from. */
  url: string
  /** When it is fetched again, while there is no image. */
  retry_at: string
  /** The image: its type, and its bytes in base64. */
  type?: Image['type']
  content?: string
  revision: number
}

/** Milliseconds after which a fetch that has failed is tried again. */
const AGAIN = 60 * 60_000

/** Milliseconds for a whole fetch. */
const TIMEOUT = 5_000

/** How many fetches of a process run at once, how many wait, and for how many milliseconds. A later page begins one that found no place. */
const SLOTS = 2
const PLACES = 32
const LONGEST_WAIT = 30_000

interface LogoParts {
  store: Store
  now: Clock
  report: (work: BackgroundWork) => (error: unknown) => void
  /** Sends requests to public addresses only. */
  read: Outbound['read']
  onWarning: (message: string) => void
}

const isHttps = (url: string): boolean => URL.parse(url)?.protocol === 'https:'

/** @throws Error with the reason, without text from the host */
async function fetchImage (read: Outbound['read'], url: string, signal: AbortSignal): Promise<Image> {
  const headers = { accept: 'image/*', 'accept-encoding': 'identity' }
  const { status, body } = await read({ method: 'GET', url, headers, limit: MOST_IMAGE, timeout: TIMEOUT, status: 200, signal })
  if (status !== 200) throw new Error(`the host has answered ${status}`)
  return recognizeImage(body)
}

const explain = (error: unknown): string =>
  error instanceof OutboundError && error.code === 'ETOOLARGE' ? `it is larger than ${MOST_IMAGE} bytes` : readMessage(error)

/**
 * The images of clients that the operator vouches for. The service fetches each once, in the background, and its pages have the copy: a browser
 * that loaded it would tell the client's host who is about to sign in.
 */
export function createLogos ({ store, now, report, read, onWarning }: LogoParts) {
  const logos = store.collection<LogoRecord>('client_logos')
  const clients = store.collection<ClientRecord>('clients')
  const queue = new FairQueue({ what: 'logos', slots: SLOTS, places: PLACES, maxWait: LONGEST_WAIT, duration: TIMEOUT / 10 })
  const running = new Set<string>()
  const closing = new AbortController()

  const isDue = (record: LogoRecord | null, url: string): boolean =>
    record === null || record.url !== url || (record.content === undefined && !isAhead({ at: record.retry_at, longest: AGAIN }, now()))

  /** Claims the fetch: of several processes, one writes. What it writes holds the others off for as long as a failure would. */
  async function claim (id: string, url: string): Promise<number | null> {
    const record = await logos.get(id)
    if (!isDue(record, url)) return null
    const fields = { url, retry_at: toTimestamp(now() + AGAIN) }
    if (record !== null) {
      const { revision } = record
      const claimed = await logos.update(id, { set: fields, unset: ['type', 'content'], increment: { revision: 1 } }, { equal: { revision } })
      return claimed?.revision ?? null
    }
    try {
      await logos.insert({ id, ...fields, revision: 0 })
      return 0
    } catch (error) {
      if (error instanceof DuplicateKeyError) return null
      throw error
    }
  }

  async function copy (id: string, url: string): Promise<void> {
    const revision = await claim(id, url)
    if (revision === null) return
    const client = await clients.get(id)
    // The client was deleted before the claim. A later deletion removes it.
    if (client === null) return await logos.delete(id).then(() => {})
    if (client.image !== url || !isVouchedFor(client)) return
    try {
      const { type, content } = await fetchImage(read, url, closing.signal)
      await logos.update(id, { set: { type, content: content.toString('base64') }, increment: { revision: 1 } }, { equal: { revision } })
    } catch (error) {
      // Another process may try at once.
      if (closing.signal.aborted) await logos.update(id, { set: { retry_at: toTimestamp(now()) } }, { equal: { revision } })
      else if (error instanceof IdentityError) throw error
      else onWarning(`the image of the client ${id} cannot be shown, and is tried again in an hour: ${explain(error)}`)
    }
  }

  function tell (error: unknown): undefined {
    const isLater = closing.signal.aborted || (error instanceof IdentityError && error.code === 'ErrBusy')
    if (!isLater) report('logos')(error)
  }

  /** Fetches an image beside the request. */
  function begin (id: string, url: string): void {
    if (running.has(id) || closing.signal.aborted) return
    running.add(id)
    queue.run(async () => await copy(id, url), { key: id, signal: closing.signal })
      .catch(tell)
      .finally(() => { running.delete(id) })
  }

  return {
    /**
     * The image of a client as a data URL, if there is a copy. Otherwise the page goes without it, and the copy is made for later ones.
     * @param image the URL, of a client that the operator vouches for
     */
    async find (id: string, image: string | undefined): Promise<string | undefined> {
      if (image === undefined || !isHttps(image)) return undefined
      // Nobody is kept from signing in for an image.
      const record = await logos.get(id).catch(tell)
      if (record === undefined) return undefined
      if (isDue(record, image)) begin(id, image)
      if (record === null || record.url !== image || record.content === undefined) return undefined
      return `data:${record.type};base64,${record.content}`
    },

    /** Aborts what is being fetched. */
    async close (): Promise<void> {
      closing.abort()
      await queue.idle()
    }
  }
}

export type Logos = ReturnType<typeof createLogos>
