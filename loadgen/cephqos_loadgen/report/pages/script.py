"""The script of the page: tables that sort, charts that show values, zoom and hide lines.

Written here, since the charts are SVG made by this package: a plotting library would be larger than
all the figures, and what it draws (canvas) is neither printed well nor an SVG file of its own.
"""

from typing import Final

_TABLES: Final = """
document.querySelectorAll("th button").forEach(function(button){
 button.addEventListener("click",function(){
  var head=button.closest("th"),body=head.closest("table").tBodies[0],at=head.cellIndex;
  var down=head.getAttribute("aria-sort")==="ascending";
  head.parentNode.querySelectorAll("th").forEach(function(h){h.removeAttribute("aria-sort")});
  head.setAttribute("aria-sort",down?"descending":"ascending");
  function value(row){return row.cells[at].getAttribute("data-v")||""}
  Array.from(body.rows).sort(function(a,b){
   var x=value(a),y=value(b),p=parseFloat(x),q=parseFloat(y);
   if(x===""||y==="")return (x==="")-(y==="");
   var order=String(p)===x&&String(q)===y||(!isNaN(p)&&!isNaN(q)&&head.className==="n")
    ?p-q:x.localeCompare(y);
   return down?-order:order;
  }).forEach(function(row){body.appendChild(row)});
 });
});
"""

# `data-time` of a chart: left, right, seconds. `data-y` of a panel: bottom, top, value at the top.
_CHARTS: Final = """
var box=document.createElement("div");box.id="values";document.body.appendChild(box);
function numbers(e,name){return e.getAttribute(name).split(" ").map(Number)}
function place(svg,event){
 var p=svg.createSVGPoint();p.x=event.clientX;p.y=event.clientY;
 return p.matrixTransform(svg.getScreenCTM().inverse());
}
function made(parent,name,set){
 var e=document.createElementNS("http://www.w3.org/2000/svg",name);
 Object.keys(set).forEach(function(k){e.setAttribute(k,set[k])});parent.appendChild(e);return e;
}
function points(path){
 if(!path.points)path.points=path.getAttribute("d").slice(1).split(/[LM]/).map(function(pair){
  return pair.split(" ").map(Number)});
 return path.points;
}
function nearest(list,x){
 var low=0,high=list.length-1;
 while(high-low>1){var mid=low+high>>1;if(list[mid][0]<x)low=mid;else high=mid}
 return x-list[low][0]<list[high][0]-x?list[low]:list[high];
}
function shown(value){
 var digits=Math.abs(value)>=100?0:Math.abs(value)>=1?1:3;
 return value.toLocaleString("en",{maximumFractionDigits:digits});
}
document.querySelectorAll(".chart .key").forEach(function(key){
 key.setAttribute("tabindex","0");key.setAttribute("role","button");key.style.cursor="pointer";
 function toggle(){
  var n=key.dataset.n,hide=key.style.opacity!=="0.35",all=key.closest(".panel,svg");
  key.style.opacity=hide?"0.35":"";
  all.querySelectorAll(".s"+n+",.f"+n).forEach(function(e){
   if(!e.closest(".key"))e.style.display=hide?"none":""});
 }
 key.addEventListener("click",toggle);
 key.addEventListener("keydown",function(e){if(e.key==="Enter")toggle()});
});
function ticks(svg,from,to){
 var t=numbers(svg,"data-time"),group=svg.querySelector(".times"),y=numbers(group,"data-y");
 var rough=(to-from)/6,unit=Math.pow(10,Math.floor(Math.log10(rough)));
 var step=[1,2,5,10].map(function(n){return n*unit}).find(function(n){return n>=rough});
 group.textContent="";
 for(var at=Math.ceil(from/step)*step;at<=to;at+=step){
  var x=t[0]+(t[1]-t[0])*(at-from)/(to-from);
  made(group,"line",{x1:x,x2:x,y1:y[0],y2:y[1],class:"grid"});
  made(group,"text",{x:x,y:y[1]+16,class:"soft middle"}).textContent=Number(at.toFixed(3));
 }
}
function stretch(svg,from,to){
 var t=numbers(svg,"data-time"),left=t[0],wide=t[1]-t[0],k=t[2]/(to-from),all=k===1;
 svg.view=[from,to];
 if(!svg.clip){
  var id="view"+document.querySelectorAll("clipPath").length;
  svg.clip=made(made(svg,"clipPath",{id:id}),"rect",{y:0,height:10000});
  svg.querySelectorAll("g.moves").forEach(function(g){g.setAttribute("clip-path","url(#"+id+")")});
 }
 svg.clip.setAttribute("x",all?0:left+wide*from/t[2]);
 svg.clip.setAttribute("width",all?10000:wide*(to-from)/t[2]);
 svg.querySelectorAll("g.moves").forEach(function(g){
  g.setAttribute("transform","matrix("+k+" 0 0 1 "+(left*(1-k)-wide*from/(to-from))+" 0)")});
 svg.querySelectorAll("text.moves").forEach(function(e){
  if(e.home===undefined)e.home=+e.getAttribute("x");
  var x=left+k*(e.home-left)-wide*from/(to-from);
  e.setAttribute("x",x);e.style.display=x<left||x>t[1]-30?"none":""});
 ticks(svg,from,to);
}
function readout(svg,event){
 var t=numbers(svg,"data-time"),view=svg.view||[0,t[2]],x=place(svg,event).x;
 if(x<t[0]||x>t[1]){box.style.display="none";return}
 var time=view[0]+(view[1]-view[0])*(x-t[0])/(t[1]-t[0]),home=t[0]+(t[1]-t[0])*time/t[2];
 var lines=[shown(time)+" s"];
 svg.querySelectorAll(".panel").forEach(function(panel){
  var y=numbers(panel,"data-y");
  panel.querySelectorAll("path[data-name]").forEach(function(path){
   if(path.style.display==="none")return;
   var p=nearest(points(path),home);
   if(Math.abs(p[0]-home)>(t[1]-t[0])/20)return;
   var axis=panel.querySelector("text.axisname").textContent;
   lines.push(axis+"  "+path.dataset.name+": "+shown((y[0]-p[1])/(y[0]-y[1])*y[2]));
  });
 });
 box.textContent=lines.join("\\n");box.style.display="block";
 var room=document.documentElement.clientWidth-box.offsetWidth-8;
 box.style.left=Math.max(0,Math.min(event.clientX+16,room))+"px";
 var below=document.documentElement.clientHeight-box.offsetHeight-8;
 box.style.top=Math.max(0,Math.min(event.clientY+16,below))+"px";
}
document.querySelectorAll("svg.chart").forEach(function(svg){
 var whole=svg.getAttribute("viewBox"),start=null,frame=null,timed=svg.hasAttribute("data-time");
 svg.addEventListener("mousedown",function(e){
  if(e.button||e.target.closest(".key"))return;
  start=place(svg,e);e.preventDefault();
  frame=made(svg,"rect",{class:"frame",x:start.x,y:start.y,width:0,height:0});
 });
 svg.addEventListener("mousemove",function(e){
  if(timed)readout(svg,e);
  if(!start)return;
  var p=place(svg,e),high=whole.split(" ")[3];
  frame.setAttribute("x",Math.min(p.x,start.x));frame.setAttribute("width",Math.abs(p.x-start.x));
  frame.setAttribute("y",timed?0:Math.min(p.y,start.y));
  frame.setAttribute("height",timed?high:Math.abs(p.y-start.y));
 });
 function end(e){
  box.style.display="none";
  if(!start)return;
  var p=place(svg,e),a=start,x=Math.min(p.x,a.x),y=Math.min(p.y,a.y);
  var wide=Math.abs(p.x-a.x),high=Math.abs(p.y-a.y);
  frame.remove();start=null;
  if(e.type==="mouseleave"||wide<8)return;
  if(timed){
   var t=numbers(svg,"data-time"),view=svg.view||[0,t[2]],scale=(view[1]-view[0])/(t[1]-t[0]);
   var from=view[0]+scale*(Math.max(x,t[0])-t[0]),to=view[0]+scale*(Math.min(x+wide,t[1])-t[0]);
   if(to-from>=2)stretch(svg,from,to);
  }else if(high>=8)svg.setAttribute("viewBox",[x,y,wide,high].join(" "));
 }
 svg.addEventListener("mouseup",end);svg.addEventListener("mouseleave",end);
 svg.addEventListener("dblclick",function(){
  svg.setAttribute("viewBox",whole);
  if(timed&&svg.view)stretch(svg,0,numbers(svg,"data-time")[2]);
 });
});
"""

SCRIPT: Final = _TABLES + _CHARTS
