import { toTimestamp } from '../lib/clock.ts'
import { UsageError, toggle, value } from './args.ts'
import type { Commands } from './command.ts'
import { printList, toBatches } from './output.ts'

export const keysCommands: Commands = {
  'keys rotate': {
    summary: 'Create a new key for signing tokens. Earlier keys stay published.',
    flags: {
      alg: value('ALG', 'RS256, or ES256: which keys get a new one. RS256 by default.'),
      'drop-former': toggle('If a key has leaked: use the new key at once and drop all earlier ones. Everybody has to sign in again.')
    },
    async run ({ services, args }) {
      const alg = args.optional('alg') ?? 'RS256'
      if (alg !== 'RS256' && alg !== 'ES256') throw new UsageError('--alg: must be RS256 or ES256')
      const { kid, since } = await services.oidc.rotateKeys({ alg, dropFormer: args.has('drop-former') })
      return { kid, signs_from: toTimestamp(since) }
    }
  },

  'keys status': {
    summary: 'List the secret keys by id, with the number of stored secrets that each encrypts.',
    flags: {},
    creates: false,
    async run (context) {
      await printList(context, toBatches(await context.services.sealing.status()), { key_id: 'key_id', state: 'state', texts: 'texts' })
    }
  },

  'keys reseal': {
    summary: 'Re-encrypt stored secrets with the first secret key. An interrupted run can be resumed.',
    flags: {},
    async run ({ services, signal }) {
      const resealed = await services.sealing.reseal({ signal })
      return [{ resealed }, 'The former keys are no longer needed: remove them, and restart every process.']
    }
  }
}
