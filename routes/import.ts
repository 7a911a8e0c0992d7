import { Type } from '@sinclair/typebox'
import type { FastifyInstance } from 'fastify'
import { ImportLineSchema, type ImportOptions, type ImportQuery, ImportQuerySchema, ImportVerdictSchema } from '../schemas/import.ts'
import { IdentityError } from '../lib/errors.ts'
import type { ImportRun } from '../lib/import/import-users.ts'
import { streamPieces } from '../lib/lists/listing.ts'
import { NDJSON_TYPE } from '../lib/lists/negotiation.ts'
import { watchRest } from '../plugins/draining.ts'
import { allowLong } from '../plugins/malformed.ts'
import { type Answer, createRows } from './rows.ts'
import type { RouteSettings } from './settings.ts'

const TYPE = 'application/x-ndjson'

/** The body is read as a stream, so it is never validated as a whole. The schema is that of a line, for the document. */
const Lines = Type.Unsafe<AsyncIterable<Buffer>>({ content: { [TYPE]: { schema: ImportLineSchema } } })

/** A request without a body has no line. */
async function * none (): AsyncGenerator<Buffer> {}

function toOptions ({ source, run, on_conflict, dry_run, trust_emails, allow_roles, allow_weak, without_factors, lazy, again }: ImportQuery): ImportOptions {
  return {
    source,
    run,
    onConflict: on_conflict,
    dryRun: dry_run === 'true',
    trustEmails: trust_emails === 'true',
    allowRoles: allow_roles === 'true',
    allowWeak: allow_weak === 'true',
    withoutFactors: without_factors === 'true',
    lazy: lazy === 'true',
    again: again === 'true'
  }
}

/** The groups as they come, until there is none for so many milliseconds, or the service waits for no more. */
async function * withProgress<T> (groups: AsyncIterable<T>, most: number, closing: AbortSignal): AsyncGenerator<T> {
  const iterator = groups[Symbol.asyncIterator]()
  let stop = (_reason: unknown) => {}
  closing.addEventListener('abort', () => stop(closing.reason), { once: true })
  let timer: NodeJS.Timeout | undefined
  try {
    while (true) {
      closing.throwIfAborted()
      const late = new Promise<never>((_resolve, reject) => {
        stop = reject
        timer = setTimeout(() => reject(new IdentityError('ErrParam', 'body: no line has arrived for too long', { statusCode: 408 })), most).unref()
      })
      const { done, value } = await Promise.race([iterator.next(), late])
      clearTimeout(timer)
      if (done === true) return
      yield value
    }
  } finally {
    clearTimeout(timer)
    // Not awaited: it would wait for the line that does not come.
    iterator.return?.()?.catch(() => {})
  }
}

async function * writeVerdicts ({ verdicts, report }: ImportRun, isDry: boolean): AsyncGenerator<string> {
  for await (const group of verdicts) if (group.length > 0) yield group.map((verdict) => `${JSON.stringify(verdict)}\n`).join('')
  if (isDry) yield `${JSON.stringify({ report })}\n`
}

const verdicts: Answer<{ run: ImportRun, isDry: boolean }> = {
  status: 200,
  schema: {
    description: 'A verdict for each line, in their order and while the lines arrive. After a dry run, the last line is `{ "report": ImportReport }`. A failure before the first verdict is answered with its status; a later one aborts the connection.',
    headers: { 'Identity-Import-Run': Type.String({ description: 'The name of the run.' }) },
    content: { [TYPE]: { schema: ImportVerdictSchema } }
  },
  errors: ['ErrLimit'],
  async write ({ reply }, { run, isDry }, { stallTimeout }) {
    const verdicts = await streamPieces(writeVerdicts(run, isDry), { format: 'document', stallTimeout: stallTimeout! })
    reply.header('identity-import-run', run.run)
    return reply.type(NDJSON_TYPE).send(verdicts)
  }
}

/** Users from another system, see docs/import.md. */
export async function importRoutes (app: FastifyInstance, settings: RouteSettings): Promise<void> {
  const { imports } = app.identity
  const validator = app.validatorCompiler!
  app.setValidatorCompiler((route) => route.httpPart === 'body' ? () => true : validator(route))
  app.removeAllContentTypeParsers()
  app.addContentTypeParser(TYPE, (_request, payload, done) => done(null, payload))
  app.addContentTypeParser('*', (_request, _payload, done) => done(new IdentityError('ErrParam', `content-type: must be ${TYPE}`, { statusCode: 415 })))
  const add = createRows(app, 'user', settings)

  add('importUsers', 'POST /user/import', 'Bring users in from another system', {
    description: 'The body has one ImportLine a line, and may be of any length; the verdicts are sent while it arrives, so a client reads them ' +
      'meanwhile. A process runs one import at a time. A run that was interrupted is started again from the beginning.',
    query: ImportQuerySchema,
    body: Lines,
    answer: verdicts,
    async run ({ request, reply, query, body, actor }) {
      allowLong(request, reply)
      const groups = withProgress(imports.readLines(body ?? none()), settings.stallTimeout, watchRest(request))
      const options = toOptions(query)
      return { run: await imports.importUsers(groups, options, actor), isDry: options.dryRun === true }
    }
  })
}
