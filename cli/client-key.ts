import { readFile } from 'node:fs/promises'
import { parseKeys } from '../lib/clients/key-text.ts'
import { IdentityError } from '../lib/errors.ts'
import { required, UsageError } from './args.ts'
import { OPERATOR, type Commands } from './command.ts'
import { printList, toBatches } from './output.ts'

const COLUMNS = {
  KID: 'kid',
  ALGORITHMS: ({ algorithms }: { algorithms: string[] }) => algorithms.join(','),
  THUMBPRINT: 'id',
  CREATED: 'createdAt',
  LAST_USED: 'lastUsedAt'
} as const

const CLIENT = required('ID', 'The client.')

async function readJwks (path: string): Promise<{ keys: unknown[] }> {
  try {
    return parseKeys(await readFile(path, 'utf8'))
  } catch (error) {
    if (error instanceof IdentityError) throw new UsageError(error.message.replace(/^jwks/, '--file'))
    throw (error as NodeJS.ErrnoException).code === 'ENOENT' ? new UsageError(`--file: there is no file ${path}`) : error
  }
}

export const clientKeyCommands: Commands = {
  'client key add': {
    summary: 'Add a public key to a client, for private_key_jwt. The others go on.',
    flags: { client: CLIENT, file: required('FILE', 'A public key in PEM, a JSON Web Key, or a set of them.') },
    creates: false,
    async run ({ services: { clients }, args }) {
      const clientId = args.required('client')
      const added = await clients.addKeys(clientId, await readJwks(args.required('file')), OPERATOR)
      return { clientId, kid: added.map(({ jwk }) => jwk.kid!).join(',') }
    }
  },

  'client key list': {
    summary: 'List the public keys of a client, with their last use.',
    flags: { client: CLIENT },
    creates: false,
    async run (context) {
      await printList(context, toBatches(await context.services.clients.listKeys(context.args.required('client'), OPERATOR)), COLUMNS)
    }
  },

  'client key remove': {
    summary: 'Remove a public key of a client. The access tokens that it got end.',
    flags: { client: CLIENT, key: required('KID', 'Its kid, or its thumbprint.') },
    creates: false,
    async run ({ services: { clients }, args }) {
      const [clientId, kid] = [args.required('client'), args.required('key')]
      await clients.removeKey(clientId, kid, OPERATOR)
      return { clientId, kid }
    }
  }
}
