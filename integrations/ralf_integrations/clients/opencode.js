// ralf: written by `ralf init --client opencode`, taken out with `ralf init --client opencode --uninstall`
//
// Tells ralf's hooks what happens in a session, hands their texts to the model, and has a log of the session written, a
// line for each finished message, call and result: the client's database has no place that lies before another for good.
// It writes none itself: it sends them to a process of ralf, which redacts them.
// It does nothing where the person has not opted the project in. It never fails, and waits no longer than LIMITS says.

import { spawn } from "node:child_process"
import { createHash } from "node:crypto"
import fs from "node:fs"
import os from "node:os"
import path from "node:path"

const COMMAND = []
const LIMITS = {}
const EVENT = "EVENT"
const LOG = "session.log" // for the command: write the logs
const PATIENCE = 2_000 // milliseconds that the client has to tell what was said before, and the log to be written
const MOST_UNWRITTEN = 64 << 20 // bytes that may wait for it
const KEPT = 30 * 86_400_000 // milliseconds after which a log is deleted
const CONTEXT = ".autonomous/context"

export const Ralf = async ({ directory, client }) => {
  const folder = path.join(absolute("XDG_DATA_HOME") ?? path.join(os.homedir(), ".local/share"), "opencode", "ralf")
  const children = new Set() // sessions of subagents: the window is not theirs
  const started = new Set() // sessions whose hooks know that they run here
  const roles = new Map() // message: user, assistant or summary
  const windows = new Map() // model: tokens of its window
  const written = new Set() // what was sent to be logged
  const behind = new Set() // sessions whose logs lack something that was sent
  const synced = new Map() // number: what is to be done once all before it is logged
  const summaries = new Map() // session: the client's summary of its window
  const waiting = new Map() // session: a text that the model has not been handed yet
  const settling = new Map() // session: what is being asked after a compaction
  let number = 0
  let writer // the process that writes the logs
  let hasFailed = false // it did, since the last prompt
  let isOver = false

  const log = (session) => path.join(folder, `${session.replace(/[^A-Za-z0-9_-]/g, "-")}.jsonl`)

  // Start the process that writes the logs. It outlives this one for as long as it takes to write what it was sent.
  const startWriter = () => {
    const [program, ...words] = command(LOG)
    const child = spawn(program, words, { cwd: directory, detached: true, stdio: ["pipe", "pipe", "ignore"] })
    const made = { child, sessions: new Set(), deleted: new Set(), isAsked: false }
    const gone = (status) => {
      if (writer === made) writer = undefined
      if (status === 0 && made.isAsked) return
      hasFailed = true
      made.deleted.forEach(remove)
      made.sessions.forEach((session) => behind.add(session))
      written.clear()
      for (const done of synced.values()) done()
      synced.clear()
    }
    child.on("error", gone)
    child.on("close", gone)
    child.stdin.on("error", () => {})
    let said = ""
    child.stdout.on("data", (data) => {
      const lines = (said + data).split("\n")
      said = lines.pop()
      for (const line of lines) {
        synced.get(Number(line))?.()
        synced.delete(Number(line))
      }
    })
    child.unref()
    child.stdout.unref?.()
    child.stdin.unref?.()
    send(made, { cwd: directory })
    return made
  }

  const send = (to, line) => {
    to.child.stdin.write(JSON.stringify(line) + "\n")
    if (to.child.stdin.writableLength > MOST_UNWRITTEN) to.child.kill("SIGKILL")
  }

  // It knows the secrets of its sessions, so it is not ended before they are.
  const endWriter = () => {
    if (!writer) return
    writer.isAsked = true
    writer.child.stdin.end()
    writer = undefined
  }

  const remove = (session) => {
    try {
      fs.rmSync(log(session), { force: true })
    } catch {}
  }

  // Delete the log of a session, behind all that was sent for it.
  const erase = (session) => {
    started.delete(session)
    behind.delete(session)
    if (!writer) return remove(session)
    writer.sessions.delete(session)
    writer.deleted.add(session)
    send(writer, { session, deleted: true })
  }

  const write = (session, record) => {
    if (hasFailed) return behind.add(session) // the next prompt tries again
    writer ??= startWriter()
    writer.sessions.add(session)
    send(writer, { session, record })
  }

  // Wait until all that was sent is logged.
  const logged = () => {
    if (!writer) return
    const mine = number++
    const done = new Promise((resolve) => synced.set(mine, resolve))
    send(writer, { sync: mine })
    return within(PATIENCE, done)
  }

  const once = (session, key, record) => {
    const whole = `${session} ${key}`
    if (written.has(whole)) return
    written.add(whole)
    write(session, record)
  }

  const payload = (event, session, fields) =>
    JSON.stringify({ session_id: session, transcript_path: log(session), cwd: directory, hook_event_name: event, ...fields })

  const command = (event) => COMMAND.map((word) => (word === EVENT ? event : word))

  // What a hook says: a text for the model, "" for nothing.
  const ask = (event, session, fields = {}) =>
    new Promise((done) => {
      try {
        const [program, ...words] = command(event)
        const child = spawn(program, words, { cwd: directory, stdio: ["pipe", "pipe", "ignore"] })
        const late = setTimeout(() => {
          child.kill("SIGKILL")
          done("")
        }, 1000 * LIMITS[event])
        const parts = []
        child.on("error", () => (clearTimeout(late), done("")))
        child.stdin.on("error", () => {})
        child.stdout.on("data", (data) => parts.push(data))
        child.on("close", (status) => {
          clearTimeout(late)
          done(status === 0 ? said(Buffer.concat(parts).toString()) : "")
        })
        child.stdin.end(payload(event, session, fields))
      } catch {
        done("")
      }
    })

  const said = (text) => {
    if (!text.startsWith("{")) return text // before a compaction
    try {
      const answer = JSON.parse(text)
      if (answer.systemMessage) show(answer.systemMessage)
      return answer.hookSpecificOutput?.additionalContext ?? ""
    } catch {
      return ""
    }
  }

  const show = (message) => {
    try {
      Promise.resolve(client?.tui?.showToast({ body: { message, variant: "info" } })).catch(() => {})
    } catch {}
  }

  // Tell a hook something that outlasts this process: its input is a file, for nobody may be left to write to it.
  const tell = (event, session, fields = {}) => {
    fs.mkdirSync(folder, { recursive: true, mode: 0o700 })
    const place = path.join(folder, `.told-${process.pid}-${number++}`)
    fs.writeFileSync(place, payload(event, session, fields), { mode: 0o600 })
    const input = fs.openSync(place, "r")
    try {
      const [program, ...words] = command(event)
      const child = spawn(program, words, { cwd: directory, detached: true, stdio: [input, "ignore", "ignore"] })
      child.on("error", () => {})
      child.unref()
    } finally {
      fs.closeSync(input)
      fs.unlinkSync(place)
    }
  }

  // ---- the log ----

  // Have a session logged from its beginning, or whatever its log lacks; whether nothing was said in it before.
  const begin = async (session) => {
    const isKnown = fs.existsSync(log(session))
    behind.delete(session)
    write(session, { type: "session", client: "opencode", session, directory, time: Date.now() })
    const before = await within(PATIENCE, client?.session?.messages({ path: { id: session } }))
    for (const { info, parts } of before?.data ?? []) {
      message(info)
      for (const part of parts) keep(part, !started.has(session))
    }
    const isNew = !isKnown && !before?.data?.length
    if (!isNew) await logged()
    return isNew
  }

  const message = (info) => {
    const session = info.sessionID
    const role = info.role === "assistant" && info.summary === true ? "summary" : info.role
    roles.set(info.id, role)
    if (role === "user") return
    const stage = info.time?.completed ? "completed" : "created"
    once(session, `${info.id} ${stage}`, {
      type: "message",
      role: info.role,
      id: info.id,
      summary: role === "summary",
      cwd: info.path?.cwd,
      window: windows.get(`${info.providerID}/${info.modelID}`),
      tokens: stage === "completed" ? info.tokens : undefined,
      finish: info.finish,
      failure: info.error?.name,
      error: info.error?.data?.message ?? info.error?.name,
      time: info.time?.[stage],
    })
  }

  // isPast: nobody is at work on it any more.
  const keep = (part, isPast = false) => {
    const session = part.sessionID
    const role = roles.get(part.messageID)
    if (role === undefined) return // of an earlier process: it stands in the log
    if (part.type === "text" || part.type === "reasoning") {
      if (!part.text || (role !== "user" && !part.time?.end && !isPast)) return
      const { type, id, messageID, text, synthetic, ignored } = part
      once(session, id, { type, role, id, message: messageID, text, synthetic, ignored, time: part.time?.end ?? Date.now() })
      if (role === "summary" && type === "text") summaries.set(session, text)
    } else if (part.type === "tool") {
      const { id, callID: call, tool, state } = part // a provider gives the same callID in each conversation
      if (state.status === "pending" || state.time?.compacted) return
      once(session, `${id} call`, { type: "call", id, call, tool, input: state.input, time: state.time?.start })
      if (state.status === "running") return
      const { exit, exists, answers } = state.metadata ?? {}
      const made = tool === "write" && exists === false
      once(session, `${id} result`, {
        type: "result",
        id,
        call,
        tool,
        status: state.status,
        output: state.output,
        error: state.error,
        exit,
        answers,
        created: made || undefined,
        time: state.time?.end,
      })
    }
  }

  // ---- what the client tells ----

  const isMine = (session) => Boolean(session) && !children.has(session) && hasOptedIn(directory)

  const happened = async ({ type, properties }) => {
    const session = properties?.sessionID ?? properties?.info?.sessionID ?? properties?.part?.sessionID
    if (type === "session.created" || type === "session.updated") {
      if (properties.info.parentID) children.add(properties.info.id)
      return
    }
    if (type === "session.deleted") return erase(properties.info.id)
    if (!started.has(session)) return // many events a second: nothing is looked for here
    if (type === "message.updated") message(properties.info)
    else if (type === "message.part.updated") keep(properties.part)
    else if (type === "message.removed" && roles.get(properties.messageID) === "user") {
      const id = properties.messageID // the person had gone back behind it, and has now sent another
      once(session, `${id} rewound`, { type: "rewound", id, time: Date.now() })
    }
    else if (type === "session.idle") {
      if (!isMine(session)) started.delete(session) // the person has opted out meanwhile
      else {
        await logged()
        if (!isOver) tell(type, session)
      }
    } else if (type === "session.compacted") {
      settling.set(session, survived(session).catch(() => {}))
      await settling.get(session)
    }
  }

  const survived = async (session) => {
    await ask("session.compacted", session, { compact_summary: summaries.get(session) ?? "" })
    const text = await ask("session.created", session, { source: "compact" })
    if (text) waiting.set(session, text)
  }

  const withWaiting = async (session, text) => {
    await settling.get(session) // the client tells of a compaction, and goes on at once
    const before = waiting.get(session) ?? ""
    waiting.delete(session)
    return [before, text].filter(Boolean)
  }

  const quietly = (run) => async (input, output) => {
    try {
      await run(input, output)
    } catch {} // a plugin that fails stops the client's turn
  }

  sweep(folder)
  return {
    event: quietly(({ event }) => happened(event)),
    "chat.params": quietly(({ model }) => {
      if (model?.limit?.context) windows.set(`${model.providerID}/${model.id}`, model.limit.context)
    }),
    "chat.message": quietly(async ({ sessionID }, { message: info, parts }) => {
      if (!isMine(sessionID)) return
      const texts = []
      hasFailed = false
      const isNew = (!started.has(sessionID) || behind.has(sessionID)) && (await begin(sessionID))
      if (!started.has(sessionID)) {
        started.add(sessionID)
        texts.push(await ask("session.created", sessionID, { source: isNew ? "startup" : "resume" }))
      }
      const typed = parts.filter((part) => part.type === "text" && !part.synthetic && !part.ignored).map((part) => unquoted(part.text))
      const answer = await ask("chat.message", sessionID, { prompt: typed.join("\n") })
      const last = parts.at(-1)?.id ?? `prt_${info.id.slice(4)}`
      ;[...texts, ...(await withWaiting(sessionID, answer))].filter(Boolean).forEach((text, place) => {
        const id = `${last.slice(0, -2)}z${"xyz"[place] ?? "z"}` // behind what was typed
        parts.push({ id, sessionID, messageID: info.id, type: "text", synthetic: true, text })
      })
    }),
    "tool.execute.after": quietly(async ({ tool, sessionID, callID, args }, output) => {
      if (!isMine(sessionID) || !started.has(sessionID)) return
      const answer = await ask("tool.execute.after", sessionID, { tool_name: tool, tool_input: args, tool_use_id: callID })
      const texts = await withWaiting(sessionID, answer)
      if (texts.length && typeof output?.output === "string") output.output += `\n\n${texts.join("\n")}`
      else if (texts.length) waiting.set(sessionID, texts.join("\n"))
    }),
    "experimental.session.compacting": quietly(async ({ sessionID }, { context }) => {
      if (!isMine(sessionID) || !started.has(sessionID)) return
      await logged()
      const text = await ask("experimental.session.compacting", sessionID, { trigger: "auto" })
      if (text) context.push(text)
    }),
    "shell.env": quietly(({ sessionID }, { env }) => {
      if (sessionID) env.OPENCODE_SESSION_ID = sessionID
    }),
    dispose: quietly(async () => {
      isOver = true
      await logged()
      endWriter()
      for (const session of started) if (isMine(session)) tell("dispose", session, { reason: "exit" })
    }),
  }
}

// What was typed on a command line: `opencode run` puts quotation marks around words with blanks.
const unquoted = (text) =>
  text.length > 2 && text.startsWith('"') && text.endsWith('"') ? text.slice(1, -1).replaceAll('\\"', '"') : text

const within = (milliseconds, promise) =>
  Promise.race([Promise.resolve(promise).catch(() => {}), new Promise((done) => setTimeout(done, milliseconds))])

const absolute = (variable) => (process.env[variable]?.startsWith("/") ? process.env[variable] : undefined)

// Whether the person has opted in the project that a directory lies in, as ralf's registration of it says.
const hasOptedIn = (directory) => {
  try {
    const named = absolute("RALF_PROJECT_DIR")
    if (named) directory = named.replace(/\/\.autonomous\/?$/, "")
    const registered = path.join(absolute("XDG_CONFIG_HOME") ?? path.join(os.homedir(), ".config"), "ralf/projects")
    for (let at = fs.realpathSync(directory); ; at = path.dirname(at)) {
      for (const top of [at, mainWorktree(at)]) {
        if (top && fs.existsSync(path.join(top, CONTEXT))) {
          const quoted = top.replaceAll("%", "%25").replaceAll("/", "%2F")
          const name = Buffer.byteLength(quoted) <= 200 ? quoted : createHash("sha256").update(top).digest("hex")
          return fs.readFileSync(path.join(registered, `${name}.json`), "utf8").includes('"hooks": true')
        }
      }
      if (at === path.dirname(at)) return false
    }
  } catch {
    return false
  }
}

const mainWorktree = (folder) => {
  try {
    const git = path.join(folder, ".git")
    if (!fs.statSync(git).isFile()) return
    const named = fs.readFileSync(git, "utf8").replace(/^gitdir:/, "").trim()
    const end = named.lastIndexOf("/.git/worktrees/")
    if (end > 0) return fs.realpathSync(path.resolve(folder, named.slice(0, end)))
  } catch {}
}

const sweep = (folder) => {
  try {
    for (const name of fs.readdirSync(folder)) {
      const place = path.join(folder, name)
      if (name.endsWith(".jsonl") && Date.now() - fs.statSync(place).mtimeMs > KEPT) fs.unlinkSync(place)
    }
  } catch {}
}
