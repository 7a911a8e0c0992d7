import { text } from 'node:stream/consumers'
import { addAbortSignal } from 'node:stream'
import type { Config } from '../config.ts'
import { SEAL_ID, type Seal } from '../lib/crypto/seal.ts'
import { paramError } from '../lib/errors.ts'
import { COLLECTIONS } from '../lib/store/collections.ts'
import { hideCredentials, openStore } from '../lib/store/index.ts'
import type { Store } from '../lib/store/port.ts'
import { required, UsageError } from './args.ts'
import type { Commands, Surroundings, Result } from './command.ts'
import { createReport } from './progress.ts'

interface OpenStore { store: Store, name: string }

const URL_TEXT = 'sqlite:PATH or mongodb://...; - reads it from stdin, because other users can read a command line.'

/** The URL of a flag. */
async function takeUrl ({ args, stdin, signal }: Surroundings, flag: string): Promise<string> {
  const url = args.required(flag)
  return url === '-' ? (await text(addAbortSignal(signal, stdin))).trim() : url
}

/** Opens the store at the URL of a flag while `use` runs. */
async function withStore<T> (
  surroundings: Surroundings,
  { services: { storeTimeout: timeout } }: Config,
  [flag, url]: ['from' | 'to', string],
  use: (at: OpenStore) => Promise<T>
): Promise<T> {
  if (/^sqlite:.*:memory:/i.test(url)) throw paramError(flag, 'is a store in memory, which cannot be moved')
  const onWarning = (message: string) => { surroundings.stderr.write(`fastify-identity: ${message}\n`) }
  const store = await openStore(url, { timeout, create: flag === 'to', onWarning, moving: true })
  try {
    return await use({ store, name: hideCredentials(url) })
  } finally {
    await store.close()
  }
}

async function moveAll (surroundings: Surroundings, places: { from: OpenStore, to: OpenStore }): Promise<Result> {
  const { signal, json, stdout } = surroundings
  const { move } = await import('../lib/maintenance/move.ts')
  const collections = await move({ ...places, collections: COLLECTIONS, now: Date.now, signal, onProgress: createReport(surroundings) })
  const seal = await places.to.store.collection<Seal>('meta').get(SEAL_ID)
  const documents = collections.reduce((sum, compared) => sum + compared.documents, 0)
  for (const { collection, documents, checksum } of json ? [] : collections) {
    if (documents > 0) stdout.write(`${collection.padEnd(20)}  ${String(documents).padStart(10)}  ${checksum}\n`)
  }
  const needs = seal === null ? '' : `, with the secret key that has the id ${seal.key_id}`
  return [{ documents, key_id: seal?.key_id, ...(json && { collections }) }, `Everything is in ${places.to.name}. Start the service there${needs}.`]
}

export const moveCommands: Commands = {
  move: {
    summary: 'Move all data to an empty database of either engine. The source becomes read-only. An interrupted move can be resumed.',
    example: 'move --from sqlite:identity.db --to mongodb://127.0.0.1/identity',
    flags: {
      from: required('URL', `The database to move: ${URL_TEXT}`),
      to: required('URL', 'The empty target database, or the target of an interrupted move.')
    },
    async runConfigured (surroundings, config) {
      const { args } = surroundings
      if (args.required('from') === '-' && args.required('to') === '-') throw new UsageError('--to: only one of the two can be read from stdin')
      const urls = { from: await takeUrl(surroundings, 'from'), to: await takeUrl(surroundings, 'to') }
      return await withStore(surroundings, config, ['from', urls.from], async (from) =>
        await withStore(surroundings, config, ['to', urls.to], async (to) => await moveAll(surroundings, { from, to })))
    }
  },

  'move withdraw': {
    summary: 'Cancel a move. The service can use its source again.',
    example: 'move withdraw --from sqlite:identity.db',
    flags: { from: required('URL', `The source of the move: ${URL_TEXT}`) },
    async runConfigured (surroundings, config) {
      const { withdrawMove } = await import('../lib/maintenance/move.ts')
      return await withStore(surroundings, config, ['from', await takeUrl(surroundings, 'from')], async ({ store, name }) => {
        const { other, isDone } = await withdrawMove(store)
        return [{ database: name, was_moved_to: other }, isDone
          ? 'The move had finished: changes made at its target are missing here, and tokens revoked there are valid here. Use only one ' +
            'of the two.'
          : 'Delete the target of the move: it is incomplete, and no service starts on it.']
      })
    }
  }
}
