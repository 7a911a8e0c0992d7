import { toTimestamp } from '../lib/clock.ts'
import { choice, toggle } from './args.ts'
import { type Commands, YES } from './command.ts'
import { confirm } from './confirm.ts'
import { printList, toBatches } from './output.ts'

const ALGORITHMS = ['RS256', 'ES256'] as const

export const keysCommands: Commands = {
  'keys rotate': {
    summary: 'Create a new key for signing tokens. Earlier keys stay published.',
    example: 'keys rotate',
    flags: {
      alg: choice('ALG', ALGORITHMS, 'RS256, or ES256: which keys get a new one. RS256 by default.'),
      'drop-former': toggle('If a key has leaked: use the new key at once and drop all earlier ones. Everybody has to sign in again.'),
      yes: YES
    },
    async run (context) {
      const { services, args } = context
      const alg = (args.optional('alg') ?? 'RS256') as typeof ALGORITHMS[number]
      if (args.has('drop-former')) await confirm(context, 'Drop all earlier keys? Everybody has to sign in again.')
      const { kid, since } = await services.oidc.rotateKeys({ alg, dropFormer: args.has('drop-former') })
      return { kid, signs_from: toTimestamp(since) }
    }
  },

  'keys status': {
    summary: 'List the secret keys, and how many secrets use each.',
    example: 'keys status',
    flags: {},
    creates: false,
    async run (context) {
      await printList(context, toBatches(await context.services.sealing.status()), { key_id: 'key_id', state: 'state', texts: 'texts' })
    }
  },

  'keys reseal': {
    summary: 'Re-encrypt stored secrets with the first secret key. An interrupted run can be resumed.',
    example: 'keys reseal',
    flags: {},
    async run ({ services, signal }) {
      const resealed = await services.sealing.reseal({ signal })
      return [{ resealed }, 'The previous keys are no longer needed: remove them, and restart every process.']
    }
  }
}
