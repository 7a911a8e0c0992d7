import type { FastifyInstance } from 'fastify'
import { previewPage } from '../../lib/pages/console/preview.ts'
import { readParameter } from '../../plugins/parameters.ts'
import type { TokenPreview } from '../../schemas/answers.ts'
import { LIMITS } from '../../schemas/common.ts'
import { ApiError } from './api.ts'
import { quote, readClient, readClientId } from './client.ts'
import { type AddPage, type Desk, type Shown, toPath } from './page.ts'
import { readText } from './people.ts'

const readAsked = (desk: Pick<Desk, 'request'>) => ({
  user_id: readText(desk, 'user_id', LIMITS.id).trim(),
  scope: readText(desk, 'scope', LIMITS.query).trim(),
  resource: readText(desk, 'resource', LIMITS.uri).trim()
})

type Answer = { preview: TokenPreview } | { refusal: string } | undefined

/** Asks what the form asks. Undefined before it is sent: an event records each answer. */
async function ask (desk: Desk, clientId: string): Promise<Answer> {
  const asked = readAsked(desk)
  if (Object.keys(asked).every((name) => readParameter(desk.request, name) === undefined)) return undefined
  try {
    const { data: preview } = await desk.call<TokenPreview>({ path: `/client/${encodeURIComponent(clientId)}/token-preview`, query: asked })
    return { preview }
  } catch (error) {
    if (!(error instanceof ApiError) || error.statusCode >= 500 || error.code === 'ErrUnknown') throw error
    return { refusal: error.message }
  }
}

async function showPreview (desk: Desk): Promise<Shown> {
  const { data: { clientId, name, document } } = await readClient(desk, readClientId(desk))
  const answer = await ask(desk, clientId)
  return (view, context) => previewPage(view, {
    to: view.base + toPath('clients', document?.id ?? clientId), name: name === '' ? clientId : name, asked: readAsked(desk), ...answer
  }, context)
}

/** What the tokens of a client would say. */
export function previewPages (_app: FastifyInstance, add: AddPage): void {
  add({
    path: '/clients/:clientId/token',
    section: 'clients',
    needs: 'previewToken',
    commands: (desk) => {
      const { scope, resource } = readAsked(desk)
      const rest = [['--scope', scope], ['--resource', resource]].flatMap(([flag = '', value = '']) => value === '' ? [] : [`${flag} ${quote(value)}`])
      return [['token preview', quote(readClientId(desk)), '--user ACCOUNT', ...rest].join(' ')]
    },
    show: showPreview
  })
}
