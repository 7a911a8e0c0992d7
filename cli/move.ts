import { text } from 'node:stream/consumers'
import { addAbortSignal } from 'node:stream'
import type { Config } from '../config.ts'
import { SEAL_ID, type Seal } from '../lib/crypto/seal.ts'
import type { MoveProgress } from '../lib/maintenance/move.ts'
import { paramError } from '../lib/errors.ts'
import { COLLECTIONS } from '../lib/store/collections.ts'
import { hideCredentials, openStore } from '../lib/store/index.ts'
import type { Store } from '../lib/store/port.ts'
import { UsageError } from './args.ts'
import type { Commands, Surroundings } from './command.ts'
import { printRecord } from './output.ts'

/** Milliseconds between two lines about the same collection. */
const INTERVAL = 2_000

const URL_TEXT = 'sqlite:PATH or mongodb://...; - reads it from stdin, because other users can read a command line.'

/** The URL of a flag. */
async function takeUrl ({ args, stdin, signal }: Surroundings, flag: string): Promise<string> {
  const url = args.required(flag)
  return url === '-' ? (await text(addAbortSignal(signal, stdin))).trim() : url
}

function open (flag: string, url: string, { services: { storeTimeout: timeout } }: Config, surroundings: Surroundings): Promise<Store> {
  if (/^sqlite:.*:memory:/i.test(url)) throw paramError(flag, 'is a store in memory, which cannot be moved')
  const onWarning = (message: string) => { surroundings.stderr.write(`fastify-identity: ${message}\n`) }
  return openStore(url, { timeout, create: flag === 'to', onWarning, moving: true })
}

/** Reports the progress on stderr. */
function createReport ({ stderr, json }: Surroundings): (progress: MoveProgress) => void {
  let [last, begin, time] = ['', 0, 0]
  return ({ step, collection, documents }) => {
    const now = performance.now()
    const name = `${step} ${collection}`
    if (name !== last) [last, begin, time] = [name, now, now]
    if (json || now - time < INTERVAL) return
    time = now
    stderr.write(`${name}: ${documents} documents, ${Math.round(documents / (now - begin) * 1000)} a second\n`)
  }
}

export const moveCommands: Commands = {
  move: {
    summary: 'Move everything into an empty database of either engine. The source takes no writes any more. May be interrupted and called again.',
    flags: {
      from: { type: 'string', value: 'URL', required: true, text: `The database to move: ${URL_TEXT}` },
      to: { type: 'string', value: 'URL', required: true, text: 'The empty database that it becomes, or the one of an interrupted move.' }
    },
    async runConfigured (surroundings, config) {
      const { args, signal, json, stdout } = surroundings
      if (args.required('from') === '-' && args.required('to') === '-') throw new UsageError('--to: only one of the two can be read from stdin')
      const { move } = await import('../lib/maintenance/move.ts')
      const urls = { from: await takeUrl(surroundings, 'from'), to: await takeUrl(surroundings, 'to') }
      const from = { store: await open('from', urls.from, config, surroundings), name: hideCredentials(urls.from) }
      try {
        const to = { store: await open('to', urls.to, config, surroundings), name: hideCredentials(urls.to) }
        try {
          const collections = await move({ from, to, collections: COLLECTIONS, now: Date.now, signal, onProgress: createReport(surroundings) })
          const seal = await to.store.collection<Seal>('meta').get(SEAL_ID)
          const documents = collections.reduce((sum, compared) => sum + compared.documents, 0)
          if (!json) {
            for (const { collection, documents, checksum } of collections) if (documents > 0) stdout.write(`${collection.padEnd(20)}  ${String(documents).padStart(10)}  ${checksum}\n`)
          }
          const needs = seal === null ? '' : `, with the secret key that has the id ${seal.key_id}`
          printRecord(surroundings, { documents, key_id: seal?.key_id, ...(json && { collections }) }, `Everything is in ${to.name}. Start the service there${needs}.`)
        } finally {
          await to.store.close()
        }
      } finally {
        await from.store.close()
      }
    }
  },

  'move withdraw': {
    summary: 'Take the mark of a move away from its source, so that the service can go on there.',
    flags: { from: { type: 'string', value: 'URL', required: true, text: `The source of the move: ${URL_TEXT}` } },
    async runConfigured (surroundings, config) {
      const { withdrawMove } = await import('../lib/maintenance/move.ts')
      const url = await takeUrl(surroundings, 'from')
      const store = await open('from', url, config, surroundings)
      try {
        const { other, isDone } = await withdrawMove(store)
        printRecord(surroundings, { database: hideCredentials(url), was_moved_to: other }, isDone
          ? 'The move was finished: what was written at its target is not here, and tokens that were revoked there are good here. Use one of the two only.'
          : 'Remove the target of the move: it is not whole, and no service starts on it.')
      } finally {
        await store.close()
      }
    }
  }
}
